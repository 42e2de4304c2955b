"""Run every tier in one go: `python -m hack.test`; CI also fails where a tier could not run."""

from __future__ import annotations

import os
import subprocess
import sys

from hack.cluster import local
from hack.cluster.state import cluster_names


def main() -> int:
    """Exit status of the test run; the clusters it brought up are taken down afterwards, also after a failure."""
    environment = {**os.environ, **({"INQUEST_ALL_TIERS": "1"} if os.environ.get("CI") == "true" else {})}
    command = [sys.executable, "-m", "pytest", "tests", "-n", "2", "--dist", "loadgroup", "-m", "not long"]
    others = cluster_names()
    try:
        return subprocess.run(command, env=environment, check=False).returncode
    finally:
        for name in cluster_names() - others:
            local.down(name=name)


if __name__ == "__main__":
    sys.exit(main())
