"""A release for one team beside what an administrator has installed once: Roles are enough for a whole case."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from hack.demo.play import Timetable, play
from hack.demo.release import ReleaseStage
from hack.rights.judging import Refusal
from inquest.api.installation import EXECUTION_NAMESPACE
from inquest.api.manifests.rbac import INVESTIGATOR, AccessRule, of_namespaces, of_the_cluster
from tests.e2e.chart.chart import ADMINISTRATOR, CHART, NAMESPACE, TEAM, Object, helm, values_of
from tests.e2e.chart.conftest import WAIT, Site, released
from tests.e2e.chart.rights import forbidden, listed, recorded
from tests.support.kube import eventually

pytestmark = [pytest.mark.xdist_group("real-node"), pytest.mark.timeout(900)]

ADMIN = "inquest-admin"
"""Where the administrator's release stands; the team has no part in it."""
PHASE_SECONDS = 300.0


def _not_seen(rules: tuple[AccessRule, ...], where: str) -> Iterator[Refusal]:
    why = "a read that no Role of the release grants is sent, and its refusal is the gap of the case"
    for rule in rules:
        yield Refusal(f"{NAMESPACE}:inquest", ("get", "list"), rule.group, rule.resources, where, why)


NOT_SEEN = (
    *_not_seen(of_the_cluster(INVESTIGATOR), "at the cluster scope"),
    *_not_seen(of_namespaces(INVESTIGATOR), 'in the namespace "kube-system"'),
)
"""All that its accounts are refused: reads for a case, and nothing else."""


@pytest.fixture(scope="module")
def team(cluster: Site) -> Iterator[Site]:
    """One release for all tests here; it looks after `shop`."""
    with ExitStack() as stack:
        for name in ("shop", ADMIN):
            cluster.kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            stack.callback(cluster.kubectl, "delete", "namespace", name, "--ignore-not-found", "--timeout=90s")
        stack.enter_context(_installed(cluster))
        stack.enter_context(released(cluster, _values(cluster), WAIT, expected=NOT_SEEN))
        eventually(
            lambda: _registered(cluster) == {"Active"}, what="the catalogue is registered", seconds=PHASE_SECONDS
        )
        yield cluster
        cluster.kubectl("delete", "sig,inv,rar,wfe", "--all", "-A", "--timeout=120s")


@contextmanager
def _installed(site: Site) -> Iterator[None]:
    """The administrator's part."""
    place = (f"--kubeconfig={site.cluster.kubeconfig}", f"--namespace={ADMIN}")
    try:
        helm("install", "installed", str(CHART), *place, values=values_of(ADMINISTRATOR))
        site.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=90s")
        yield
    finally:
        helm("uninstall", "installed", *place, "--ignore-not-found", "--wait")


def _values(site: Site) -> Object:
    """Those of the chart's own scenario, for one namespace, with the images that were just built."""
    given = values_of(TEAM)
    return {
        **given,
        **site.values(),
        "rbac": {**given["rbac"], "namespaced": ["shop"], "approvers": ["admin"]},
        "catalogue": {"enabled": True, "image": site.images["kubectl"].pinned},
        "settings": {"effectiveness": {"stabilization": "8s"}},
    }


def _registered(site: Site) -> set[str]:
    items = json.loads(site.kubectl("get", "rwf", "-n", NAMESPACE, "-o", "json"))["items"]
    return {(item.get("status") or {}).get("registration", "") for item in items}


@pytest.mark.parametrize("mode", ["RV-01-namespaced"])
def test_every_account_may_what_stands_in_the_golden_file_and_nothing_else(team: Site, mode: str) -> None:
    told = listed(team)

    assert forbidden(told) == []
    assert told == recorded(mode)


def test_nothing_of_the_cluster_is_bound_to_its_accounts_but_the_reading_of_what_is_installed(team: Site) -> None:
    bindings = json.loads(team.kubectl("get", "clusterrolebindings", "-o", "json"))["items"]
    homes = {NAMESPACE, EXECUTION_NAMESPACE}

    bound = {
        each["roleRef"]["name"]
        for each in bindings
        for subject in each.get("subjects", [])
        if subject.get("namespace") in homes or any(subject["name"].endswith(f":{home}") for home in homes)
    }
    assert bound == {"inquest-installed"}


def test_it_is_ready_misses_nothing_and_finds_the_administrators_policies(team: Site) -> None:
    wanted = {f"[+] {part}" for part in ("kinds and watch", "lease", "rights", "missing rights", "admission policies")}

    eventually(lambda: _readiness(team) >= wanted, what="readiness names no fault", seconds=PHASE_SECONDS)
    assert "ok" in team.helm("test", "inquest", "--logs").splitlines()


READ = (
    "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8081/readyz?verbose', timeout=10).read().decode())"
)


def _readiness(site: Site) -> set[str]:
    """The lines of `/readyz?verbose`, from inside the pod: a Role can let nobody read them from elsewhere."""
    inside = ("exec", "deployment/inquest", "-c", "operator", "-n", NAMESPACE, "--")
    told = site.kubectl.ask(*inside, "/opt/inquest/bin/python", "-c", READ).out
    return {line for line in told.splitlines() if line.startswith("[")}


def test_a_whole_case_of_its_namespace_is_played_and_says_what_could_not_be_seen(team: Site, tmp_path: Path) -> None:
    assert play(ReleaseStage(team.cluster, tmp_path), Timetable(), approve=True)

    (case,) = json.loads(team.kubectl("get", "inv", "-n", NAMESPACE, "-o", "json"))["items"]
    assert case["status"]["resolution"] == "Remediated"
    assert case["spec"]["signal"]["environment"] == "Production", "the labels of its namespace are read"
    told = json.dumps(case["status"]["gaps"])
    assert "is forbidden" in told, told
    assert "nodes" in told, told


ELSEWHERE = {
    "another namespace": {"kind": "Deployment", "name": "cart", "namespace": "default", "apiVersion": "apps/v1"},
    "the cluster": {"kind": "Node", "name": "node", "apiVersion": "v1"},
}


@pytest.mark.parametrize("target", ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_signal_about_anything_else_is_refused_with_a_reason(team: Site, target: Object) -> None:
    name = f"beyond-{target['kind'].lower()}"
    spec = {"name": "KubePodCrashLooping", "severity": "critical", "source": {"type": "Manual"}, "target": target}
    metadata = {"name": name, "namespace": NAMESPACE}
    found = {"apiVersion": "inquest.dev/v1alpha1", "kind": "Signal", "metadata": metadata, "spec": spec}
    assert team.kubectl.create(found).accepted

    def status() -> Object:
        got: Object = team.kubectl.within(NAMESPACE).get("signal", name).get("status", {})
        return got

    eventually(lambda: status().get("phase") == "Blocked", what=f"{name} is refused", seconds=PHASE_SECONDS)
    assert status()["reason"] == "OutOfScope"
    assert "looks after targets in shop" in status()["message"]
    assert "investigationRef" not in status()
