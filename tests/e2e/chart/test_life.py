"""A release from its install to its removal on a real Kubernetes, with a whole case between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hack import postgres
from hack.demo.play import (
    Timetable,
    break_workload,
    decide,
    is_healthy,
    play,
    raise_signal,
    watch_end,
    watch_investigation,
)
from hack.demo.release import ReleaseStage
from tests.e2e.chart.chart import CHART, NAMESPACE
from tests.e2e.chart.conftest import EXECUTION, WAIT, Install, Site
from tests.support.kube import eventually

pytestmark = [pytest.mark.xdist_group("real-node"), pytest.mark.timeout(900)]


def test_a_release_works_and_leaves_nothing_stuck_when_removed_as_the_docs_say(
    cluster: Site, install: Install, tmp_path: Path
) -> None:
    changes: dict[str, Any] = {
        "catalogue": {"enabled": True, "image": cluster.images["kubectl"].pinned},
        "rbac": {"approvers": ["admin"]},
        "settings": {"effectiveness": {"stabilization": "8s"}},
    }
    site = install(*WAIT, **changes)
    eventually(lambda: registered(site) == {"Active"}, what="the catalogue is registered")

    stage = ReleaseStage(site.cluster, tmp_path)
    break_workload(stage)
    raise_signal(stage)
    request = watch_investigation(stage)
    assert request is not None

    before = operator_pod(site)
    changes["settings"] |= {"log_level": "debug"}
    assert "\nkind: RemediationWorkflow\n" not in site.helm("get", "manifest", "inquest")
    told = site.helm("upgrade", "inquest", str(CHART), *WAIT, values=site.values(**changes))
    assert "Before this upgrade: admin everywhere, and whoever" in told
    assert "\nkind: RemediationWorkflow\n" in site.helm("get", "manifest", "inquest"), "it is the release's from now on"
    assert operator_pod(site) != before
    decide(stage, request, approve=True)
    assert watch_end(stage)["status"]["resolution"] == "Remediated"
    assert is_healthy(stage)

    site.helm("rollback", "inquest", "1", *WAIT)
    eventually(lambda: registered(site) == {"Active"}, what="the catalogue is registered again")
    assert "ok" in site.helm("test", "inquest", "--logs").splitlines()

    remove_cases(site)
    # Nobody's namespace may wait for an operator that is away.
    site.kubectl("scale", "deployment/inquest", "--replicas=0", "-n", NAMESPACE)
    site.kubectl(
        "wait", "--for=delete", "pod", "-l", "app.kubernetes.io/name=inquest", "-n", NAMESPACE, "--timeout=90s"
    )
    assert leases(site) == []
    site.kubectl("create", "namespace", "bystander")
    site.kubectl("delete", "namespace", "bystander", "--timeout=60s")
    site.helm("uninstall", "inquest", *WAIT)
    assert {kind.split("/")[0] for kind in ours(site)} == {"customresourcedefinition.apiextensions.k8s.io"}
    site.kubectl("delete", "crd", "-l", "app.kubernetes.io/part-of=inquest", "--timeout=90s")
    site.kubectl("delete", "namespace", NAMESPACE, EXECUTION, "--timeout=90s")
    assert ours(site) == []


def operator_pod(site: Site) -> str:
    return site.kubectl("get", "pod", "-l", "app.kubernetes.io/name=inquest", "-n", NAMESPACE, "-o", "name")


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


def test_a_case_is_kept_in_postgresql_by_a_datastorage_of_its_own(install: Install, tmp_path: Path) -> None:
    """There are no names in this cluster, so the Service is given by its address."""
    served: dict[str, Any] = {"enabled": True, "databaseSecret": {"name": "inquest-database"}}
    site = install(datastorage={"deployment": served})
    with postgres.running(host=site.cluster.host_address) as database:
        secret = f"--from-literal=url={database.create('inquest')}"
        site.kubectl("create", "secret", "generic", "inquest-database", secret, "-n", NAMESPACE)
        address = site.kubectl.within(NAMESPACE).get("service", "data-storage-service")["spec"]["clusterIP"]
        served["url"] = f"http://{address}:8080"

        upgrade(site, datastorage={"deployment": served}, rbac={"approvers": ["admin"]})

        assert play(ReleaseStage(site.cluster, tmp_path), Timetable(), approve=True)
        eventually(lambda: recorded_cases(site) == ["True"], what="the case is stored")
        assert database.ask("inquest", "select count(*) > 0 from audit_events") == "t"
        assert site.kubectl("get", "pvc", "-n", NAMESPACE, "-o", "name") == ""
        remove_cases(site)


def upgrade(site: Site, **changes: Any) -> None:
    """To the catalogue, which wants the kinds first, and to a short stabilisation."""
    values = site.values(
        catalogue={"enabled": True, "image": site.images["kubectl"].pinned},
        settings={"effectiveness": {"stabilization": "8s"}},
        **changes,
    )
    site.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=90s")
    site.helm("upgrade", "inquest", str(CHART), *WAIT, values=values)
    eventually(lambda: registered(site) == {"Active"}, what="the catalogue is registered")


def recorded_cases(site: Site) -> list[str]:
    """What each case says of its record."""
    cases = json.loads(site.kubectl("get", "inv", "-n", NAMESPACE, "-o", "json"))["items"]
    told = (one for case in cases for one in case["status"].get("conditions", []))
    return [one["status"] for one in told if one["type"] == "Recorded"]


def remove_cases(site: Site) -> None:
    """While there is an operator that takes its marks off."""
    site.kubectl("delete", "namespace", "shop", "--timeout=90s")
    site.kubectl("delete", "sig,inv,rar,wfe", "--all", "-A", "--timeout=90s")
