"""What the API server keeps of requests: who asked for what and was told what, of the accounts that are being tried.

Only accounts of namespaces other than Kubernetes' own, never a body, one line when a request has been answered. That
is little enough to be always on: a switch could be forgotten, and then a refusal would look like no request at all.
"""

from pathlib import Path
from typing import Final

import yaml

from hack.cluster.site import Site
from hack.cluster.state import write_atomically

MEGABYTES: Final = 100
FILES: Final = 8
"""So many full ones are kept beside the one that grows, each a quarter of a million requests."""

POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"], "omitManagedFields": True},
        {"level": "None"},
    ],
}


def audit_log(folder: Path) -> Path:
    """The file that grows; full ones stand beside it."""
    return folder / "audit" / "requests.log"


def audit_options(site: Site) -> list[str]:
    """The API server's options; the log is written before the answer goes out, so that none is lost."""
    policy, log = site.folder / "audit-policy.yaml", audit_log(site.folder)
    write_atomically(policy, yaml.safe_dump(POLICY, sort_keys=False))
    log.parent.mkdir(mode=0o700, exist_ok=True)
    return [
        f"--audit-policy-file={policy}",
        # Two words: the file that an option names in one belongs to what a program is made of, and this one grows.
        "--audit-log-path",
        str(log),
        "--audit-log-mode=blocking",
        f"--audit-log-maxsize={MEGABYTES}",
        f"--audit-log-maxbackup={FILES}",
    ]
