"""The real helm on the chart, without a cluster: values in, objects out."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from hack.tools import build

ROOT = Path(__file__).resolve().parents[3]
CHART = ROOT / "charts" / "inquest"
SCENARIOS = sorted((CHART / "ci").glob("*-values.yaml"))
ADMINISTRATOR = CHART / "ci" / "admin-values.yaml"
TEAM = CHART / "ci" / "namespaced-values.yaml"
RUNNING = [path for path in SCENARIOS if path != ADMINISTRATOR]
"""Those with an operator."""
NAMESPACE = "inquest-system"
IMAGE = {"image": {"repository": "registry.example/inquest/operator"}}
SIGNING = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
CALL_SECONDS = 300

Object = dict[str, Any]


class Refused(Exception):
    """What helm said instead of an answer."""


def helm(*arguments: str, values: Mapping[str, Any] | None = None) -> str:
    """One call of helm; `values` go in as a file would."""
    given = ["--values=-"] if values is not None else []
    command = [str(build(["helm"]) / "helm"), *arguments, *given]
    text = yaml.safe_dump(dict(values)) if values is not None else ""
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=CALL_SECONDS, check=False)
    if done.returncode != 0:
        raise Refused(done.stderr)
    return done.stdout


def rendered(values: Mapping[str, Any], *options: str) -> list[Object]:
    """Every object that the chart gives for these values."""
    text = helm("template", "inquest", str(CHART), f"--namespace={NAMESPACE}", *options, values=values)
    # In C: a rendered chart is long, and rendered often.
    return [found for found in yaml.load_all(text, Loader=yaml.CSafeLoader) if found]


def values_of(path: Path) -> Object:
    """The values of one of the chart's own scenarios."""
    found: Object = yaml.safe_load(path.read_text())
    return found


def one(objects: list[Object], kind: str, name: str = "inquest") -> Object:
    """The object of that kind and name."""
    (found,) = [each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found
