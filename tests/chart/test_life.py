"""A release from its install to its removal on a real Kubernetes, with a whole case between."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hack.demo.play import Timetable, play
from hack.demo.stage import Stage
from tests.chart.chart import CHART, NAMESPACE
from tests.chart.conftest import EXECUTION, WAIT, Install, Site
from tests.chart.rights import forbidden, listed, recorded
from tests.cluster.kube import eventually

pytestmark = [pytest.mark.xdist_group("real-node"), pytest.mark.timeout(900)]


def test_a_release_works_and_leaves_nothing_stuck_when_removed_as_the_docs_say(
    install: Install, tmp_path: Path
) -> None:
    site = install(*WAIT)
    catalogue = site.values(
        catalogue={"enabled": True, "image": site.images["kubectl"].pinned},
        rbac={"approvers": ["admin"]},
        settings={"effectiveness": {"stabilization": "8s"}},
    )
    site.helm("upgrade", "inquest", str(CHART), *WAIT, values=catalogue)
    eventually(lambda: registered(site) == {"Active"}, what="the catalogue is registered")

    assert play(Stage(site.cluster, tmp_path), Timetable(), approve=True)

    site.helm("rollback", "inquest", "1", *WAIT)
    assert registered(site) == set()
    assert "ok" in site.helm("test", "inquest", "--logs").splitlines()

    site.kubectl("delete", "namespace", "shop", "--timeout=90s")
    site.kubectl("delete", "sig,inv,rar,wfe", "--all", "-A", "--timeout=90s")
    site.kubectl("scale", "deployment/inquest", "--replicas=0", "-n", NAMESPACE)
    site.kubectl(
        "wait", "--for=delete", "pod", "-l", "app.kubernetes.io/name=inquest", "-n", NAMESPACE, "--timeout=90s"
    )
    assert leases(site) == []
    site.helm("uninstall", "inquest", *WAIT)
    assert {kind.split("/")[0] for kind in ours(site)} == {"customresourcedefinition.apiextensions.k8s.io"}
    site.kubectl("delete", "crd", "-l", "app.kubernetes.io/part-of=inquest", "--timeout=90s")
    site.kubectl("delete", "namespace", NAMESPACE, EXECUTION, "--timeout=90s")
    assert ours(site) == []


def registered(site: Site) -> set[str]:
    items = json.loads(site.kubectl("get", "rwf", "-n", NAMESPACE, "-o", "json"))["items"]
    return {(item.get("status") or {}).get("registration", "") for item in items}


def leases(site: Site) -> list[str]:
    return site.kubectl("get", "leases", "-n", NAMESPACE, "-o", "name").split()


def ours(site: Site) -> list[str]:
    """Objects of no namespace that carry our name."""
    kinds = "crd,clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings"
    kinds += ",mutatingadmissionpolicies,mutatingadmissionpolicybindings"
    return [name for name in site.kubectl("get", kinds, "-o", "name").split() if "inquest" in name]


@pytest.mark.parametrize("mode", ["RV-01-namespaced"])
def test_an_investigator_of_one_namespace_may_read_that_one_and_no_other(
    cluster: Site, install: Install, mode: str
) -> None:
    cluster.kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})

    site = install(*WAIT, rbac={"namespaced": ["shop"]})

    told = listed(site)

    assert forbidden(told) == []
    assert told == recorded(mode)
    cluster.kubectl("delete", "namespace", "shop", "--timeout=90s")
