"""A policy that is changed under a running release, as its user changes it: in the ConfigMap."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.chart.chart import NAMESPACE
from tests.e2e.chart.conftest import WAIT, Install, Site
from tests.support.kube import eventually

pytestmark = [pytest.mark.xdist_group("real-node"), pytest.mark.timeout(900)]

SECONDS = 240
"""The kubelet brings a changed ConfigMap into a pod within a minute or two."""


def test_a_broken_policy_is_told_and_the_last_good_one_stays_until_a_good_one_comes(install: Install) -> None:
    site = install(*WAIT)
    good = policy_of(site)

    write(site, good + "\nthis is no rego {\n")

    eventually(lambda: "has not taken up" in told(site), what="the refusal is an event", seconds=SECONDS)
    write(site, good + "\n# mended\n")
    eventually(lambda: '"PolicyLoaded"' in logs(site), what="the good one is in force", seconds=SECONDS)


def policy_of(site: Site) -> str:
    found = json.loads(site.kubectl("get", "configmap", "inquest-policy", "-n", NAMESPACE, "-o", "json"))
    return str(found["data"]["approval.rego"])


def write(site: Site, text: str) -> None:
    change = json.dumps({"data": {"approval.rego": text}})
    site.kubectl("patch", "configmap", "inquest-policy", "-n", NAMESPACE, "--type=merge", "-p", change)


def told(site: Site) -> str:
    """What the events of a refused policy say."""
    chosen = ("--field-selector=reason=PolicyRejected", "-o", "json")
    items: list[dict[str, Any]] = json.loads(site.kubectl("get", "events", "-n", NAMESPACE, *chosen))["items"]
    return "\n".join(str(item.get("message") or item.get("note")) for item in items)


def logs(site: Site) -> str:
    return site.kubectl("logs", "deploy/inquest", "-c", "operator", "-n", NAMESPACE)
