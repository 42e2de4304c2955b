"""What the chart renders, asked of the real helm; the cluster is asked in test_release."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from hack.gen import chart as generated
from hack.gen import files
from hack.packages import unpacked
from inquest.api.manifests.rbac import PEOPLE, render_confined, render_datastorage, render_rbac
from inquest.api.names import API_SERVICE
from inquest.settings.settings import Settings
from inquest.telemetry.metrics import REGISTRY
from tests.e2e.chart.chart import (
    ADMINISTRATOR,
    CHART,
    IMAGE,
    NAMESPACE,
    RUNNING,
    SCENARIOS,
    SIGNING,
    TEAM,
    Object,
    Refused,
    helm,
    one,
    rendered,
    values_of,
)

EVERY = pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
EVERY_RUNNING = pytest.mark.parametrize("path", RUNNING, ids=lambda path: path.stem)


def with_values(**changes: Any) -> Object:
    return {**IMAGE, **changes}


def pod_of(objects: list[Object]) -> Object:
    found: Object = one(objects, "Deployment")["spec"]["template"]["spec"]
    return found


def settings_of(objects: list[Object]) -> Object:
    found: Object = json.loads(one(objects, "ConfigMap", "inquest-settings")["data"]["settings.yaml"])
    return found


@EVERY
def test_every_object_of_a_scenario_carries_the_labels_of_its_release(path: Path) -> None:
    found = rendered(values_of(path))

    labels = [each["metadata"]["labels"] for each in found]
    assert labels
    assert all(label["app.kubernetes.io/instance"] == "inquest" and label["helm.sh/chart"] for label in labels)


@EVERY_RUNNING
def test_the_product_accepts_the_settings_that_a_scenario_gives_it(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(one(rendered(values_of(path)), "ConfigMap", "inquest-settings")["data"]["settings.yaml"])

    loaded = Settings.load(file)

    assert loaded.kubernetes.namespace == NAMESPACE
    assert loaded.server.host == "0.0.0.0"


def test_settings_reach_the_product_as_they_were_given() -> None:
    given = {"limits": {"token_budget": 2_000_000}, "triage": {"window": "90m"}, "execution": {"dry_run": True}}

    found = settings_of(rendered(with_values(settings=given)))

    assert found["limits"] == {"token_budget": 2_000_000}
    assert found["triage"] == {"window": "90m"}
    assert found["execution"] == {"dry_run": True, "namespace": "inquest-workflows"}


REFUSED: Mapping[str, tuple[Object, str]] = {
    "a certificate that the API server could not check": ({"evidence": {"tlsSecret": "mine"}}, "evidence.caBundle"),
    "an unknown value": ({"replicaCount": 1}, "replicaCount"),
    "an unknown setting": ({"settings": {"triage": {"rates": 3}}}, "rates"),
    "an unknown group of settings": ({"settings": {"nonsense": {}}}, "nonsense"),
    "a duration of another kind": ({"settings": {"triage": {"window": "P1D"}}}, "does not match pattern"),
    "a setting out of bounds": ({"settings": {"limits": {"max_turns": 0}}}, "minimum"),
    "a key in plain text": ({"settings": {"model": {"api_key": "x"}}}, "api_key"),
    "the password of a proxy": ({"settings": {"prometheus": {"proxy": "http://u:p@h:1"}}}, "proxy"),
    "an address that is a key": ({"settings": {"herald": {"webhooks": ["https://h/key"]}}}, "webhooks"),
    "a receiver's address that is a key": (
        {"settings": {"herald": {"receivers": [{"name": "a", "kind": "slack", "url": "https://h/key"}]}}},
        "url",
    ),
    "a database with its password": ({"settings": {"datastorage": {"database": "x"}}}, "database"),
    "a login in an address": ({"settings": {"datastorage": {"url": "http://u:p@h"}}}, "does not match pattern"),
    "a login in the address of the served DataStorage": (
        {"datastorage": {"deployment": {"url": "http://u:p@h"}}},
        "does not match pattern",
    ),
    "what only the chart can know": ({"settings": {"kubernetes": {"namespace": "other"}}}, "kubernetes"),
    "no image": ({"image": {"repository": ""}}, "image.repository"),
    "two replicas on one database": ({"replicas": 2}, "belongs to one process"),
    "workflows beside the operator": ({"execution": {"namespace": NAMESPACE}}, "own namespace"),
    "workloads in care where workflows run": ({"rbac": {"namespaced": ["inquest-workflows"]}}, "where workflows run"),
    "policies for another operator than its own": (
        {"admissionPolicies": {"operatorNamespace": "elsewhere"}},
        "without an operator",
    ),
    "a served DataStorage for one team": (
        {
            "rbac": {"namespaced": ["shop"]},
            "datastorage": {"deployment": {"enabled": True, "databaseSecret": {"name": "db"}}},
        },
        "no Role can grant",
    ),
    "a door for one team without a token": (
        {"rbac": {"namespaced": ["shop"]}, "settings": {"intake": {"enabled": True}}},
        "intake.token_file",
    ),
    "a monitor of pods without a token": ({"podMonitor": {"enabled": True}}, "podMonitor.tokenSecret.name"),
    "an approver where no case can stand": (
        {"rbac": {"namespaced": ["shop"], "approvers": [{"group": "sre", "namespaces": ["pay"]}]}},
        "no case can stand in pay",
    ),
    "an approver who is nobody": ({"rbac": {"approvers": [{"namespaces": ["pay"]}]}}, "approvers"),
    "an approver who is two": ({"rbac": {"approvers": [{"user": "a", "group": "b"}]}}, "approvers"),
    "no policy engine": ({"opa": {"sidecar": False}}, "opa.url"),
    "two policy engines": ({"opa": {"url": "http://opa"}}, "opa.sidecar"),
    "two certificates of the door": (
        {"settings": {"intake": {"enabled": True}}, "intake": {"tlsSecret": "a", "certManager": {"enabled": True}}},
        "tlsSecret or certManager",
    ),
    "a certificate without an issuer": (
        {"settings": {"intake": {"enabled": True}}, "intake": {"certManager": {"enabled": True}}},
        "issuerRef.name",
    ),
    "a certificate without a door": ({"intake": {"certManager": {"enabled": True}}}, "nobody listens"),
    "two policies": ({"policy": {"content": "x", "existingConfigMap": "mine"}}, "not both"),
    "network policy without addresses": ({"networkPolicy": {"enabled": True}}, "apiServerCIDRs"),
    "a way out without a destination": (
        {
            "networkPolicy": {
                "enabled": True,
                "apiServerCIDRs": ["10.0.0.1/32"],
                "extraEgress": [{"ports": [{"port": 443}]}],
            }
        },
        "networkPolicy.extraEgress: a rule without `to`",
    ),
    "a catalogue without an image": ({"catalogue": {"enabled": True}}, "catalogue.image"),
    "a catalogue by tag": ({"catalogue": {"enabled": True, "image": "kubectl:1"}}, "does not match pattern"),
    "a served DataStorage without a database": (
        {"datastorage": {"deployment": {"enabled": True}}},
        "databaseSecret.name",
    ),
    "two DataStorages": (
        {
            "datastorage": {"deployment": {"enabled": True, "databaseSecret": {"name": "db"}}},
            "settings": {"datastorage": {"mode": "external", "url": "http://elsewhere"}},
        },
        "choose one",
    ),
    "senders without a door": ({"intake": {"sources": [{"serviceAccount": "a", "namespace": "b"}]}}, "intake.enabled"),
    "a door without a login": ({"settings": {"intake": {"enabled": True, "authentication": "none"}}}, "login"),
}


@pytest.mark.parametrize(("values", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_values_that_cannot_work_are_refused_by_name(values: Object, why: str) -> None:
    with pytest.raises(Refused, match=re.escape(why)):
        rendered(with_values(**values))


NEAREST: Mapping[str, tuple[Object, str]] = {
    "one letter too many": ({"replicass": 2}, "replicass is unknown; did you mean replicas?"),
    "the word of other charts": ({"replicaCount": 2}, "replicaCount is unknown; did you mean replicas?"),
    "two letters swapped": ({"netwrokPolicy": {}}, "netwrokPolicy is unknown; did you mean networkPolicy?"),
    "within a group": ({"image": {"repo": "x"}}, "image.repo is unknown; did you mean image.repository?"),
    "a setting": (
        {"settings": {"triage": {"rates": 3}}},
        "settings.triage.rates is unknown; did you mean settings.triage.rate?",
    ),
    "a setting at the top": ({"cluster_name": "west"}, "cluster_name is unknown; did you mean settings.cluster_name?"),
    "a key in plain text": (
        {"settings": {"model": {"api_key": "x"}}},
        "settings.model.api_key is unknown; did you mean settings.model.api_key_file?",
    ),
    "nothing near": ({"zzz": 1}, "- zzz is unknown\n"),
    "as deep as it goes": (
        {"datastorage": {"deployment": {"databaseSecret": {"eman": "x"}}}},
        "deployment.databaseSecret.eman is unknown; did you mean datastorage.deployment.databaseSecret.name?",
    ),
}


@pytest.mark.parametrize(("values", "why"), NEAREST.values(), ids=NEAREST.keys())
def test_an_unknown_key_is_refused_with_the_nearest_one(values: Object, why: str) -> None:
    with pytest.raises(Refused, match=re.escape(why)):
        helm(
            "install",
            "inquest",
            str(CHART),
            f"--namespace={NAMESPACE}",
            "--dry-run=client",
            values=with_values(**values),
        )


def test_all_slips_are_told_at_once() -> None:
    with pytest.raises(Refused) as found:
        rendered(with_values(replicass=2, opa={"sidecars": True}, rbac={"people": True, "aprovers": []}))

    told = re.findall(r"- (\S+) is unknown", str(found.value))
    assert told == ["opa.sidecars", "rbac.aprovers", "replicass"]


def test_every_key_of_the_values_file_is_known() -> None:
    known = generated.known_keys()["known"]

    def unknown(values: Object, tree: Object) -> list[str]:
        below = [(values[key], tree[key]) for key in values if key in tree and isinstance(values[key], dict)]
        deeper = [one for inner, member in below if member for one in unknown(inner, member)]
        return [*(key for key in values if key not in tree), *deeper]

    assert unknown(yaml.safe_load((CHART / "values.yaml").read_text()), known) == []
    assert known["image"]["digest"] == known["commonLabels"] == {}


def test_every_setting_of_the_product_can_be_given_or_is_set_by_the_chart() -> None:
    schema = generated.settings_schema()["properties"]
    groups = {name for name, field in Settings.model_fields.items() if hasattr(field.annotation, "model_fields")}

    assert set(schema) | set(generated.OWN_GROUPS) | {"replica"} == set(Settings.model_fields)
    for name in groups - set(generated.OWN_GROUPS):
        model = Settings.model_fields[name].annotation
        own = generated.OWN_SETTINGS.get(model.__name__, ())  # type: ignore[union-attr]
        left_out = set(model.model_fields) - set(schema[name]["properties"]) - set(own)  # type: ignore[union-attr]
        assert all("SecretStr" in str(model.model_fields[one].annotation) for one in left_out)  # type: ignore[union-attr]


@EVERY_RUNNING
def test_every_container_runs_without_rights_on_a_read_only_root(path: Path) -> None:
    objects = rendered(values_of(path))
    pods = [pod_of(objects), one(objects, "Pod", "inquest-test")["spec"]]

    for pod in pods:
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            own = container["securityContext"]
            assert own["readOnlyRootFilesystem"] is True
            assert own["allowPrivilegeEscalation"] is False
            assert own["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]["memory"]


@EVERY_RUNNING
def test_the_token_reaches_the_operator_alone_and_ends_within_the_hour(path: Path) -> None:
    pod = pod_of(rendered(values_of(path)))

    (account,) = [volume for volume in pod["volumes"] if volume["name"] == "account"]
    holders = [box["name"] for box in pod["containers"] if "account" in {m["name"] for m in box["volumeMounts"]}]
    assert account["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"] == 3600
    assert holders == ["operator"]


def test_a_database_in_the_pod_is_never_opened_by_two_processes() -> None:
    embedded = one(rendered(with_values()), "Deployment")["spec"]
    external = one(rendered(values_of(next(p for p in SCENARIOS if "external" in p.name))), "Deployment")["spec"]

    assert (embedded["strategy"]["type"], embedded["replicas"]) == ("Recreate", 1)
    assert (external["strategy"]["type"], external["replicas"]) == ("RollingUpdate", 2)


SERVED = {"deployment": {"enabled": True, "databaseSecret": {"name": "db"}}}


def test_a_served_datastorage_is_what_the_operator_asks_and_keeps_nothing_in_its_pod() -> None:
    found = rendered(with_values(datastorage=SERVED))

    asked = settings_of(found)["datastorage"]
    (box,) = one(found, "Deployment", "inquest-datastorage")["spec"]["template"]["spec"]["containers"]
    assert (asked["mode"], asked["url"]) == ("external", f"http://data-storage-service.{NAMESPACE}.svc:8080")
    assert box["env"][0]["valueFrom"]["secretKeyRef"] == {"name": "db", "key": "url"}
    assert "PersistentVolumeClaim" not in {each["kind"] for each in found}
    assert "password" not in json.dumps(found)


def test_the_service_of_the_operator_leads_to_no_pod_of_its_datastorage() -> None:
    found = rendered(with_values(datastorage=SERVED))
    labels = {
        name: one(found, "Deployment", name)["spec"]["template"]["metadata"]["labels"]
        for name in ("inquest", "inquest-datastorage")
    }

    def reached(service: str) -> set[str]:
        wanted = one(found, "Service", service)["spec"]["selector"].items()
        return {name for name, given in labels.items() if wanted <= given.items()}

    assert reached("inquest") == {"inquest"}
    assert reached("data-storage-service") == {"inquest-datastorage"}


def test_a_changed_setting_or_policy_starts_the_pod_again() -> None:
    def marks(**changes: Any) -> Object:
        found: Object = one(rendered(with_values(**changes)), "Deployment")["spec"]["template"]["metadata"]
        return {key: value for key, value in found["annotations"].items() if key.startswith("checksum/")}

    plain = marks()

    assert marks(settings={"log_level": "debug"})["checksum/settings"] != plain["checksum/settings"]
    assert marks(policy={"content": "package inquest.approval"})["checksum/policy"] != plain["checksum/policy"]
    assert marks() == plain


def test_the_default_policy_is_the_one_of_the_product() -> None:
    found = one(rendered(with_values()), "ConfigMap", "inquest-policy")["data"]["approval.rego"]

    assert found.strip() == (files.ROOT / "policies" / "approval.rego").read_text().strip()


# --- rights ---------------------------------------------------------------------------------------------------------


def rights(objects: list[Object], kinds: tuple[str, ...] = ("Role", "ClusterRole")) -> set[tuple[str, ...]]:
    """Every single right that the roles grant, and where."""
    return {
        (role["metadata"].get("namespace") or ("" if role["kind"] == "ClusterRole" else NAMESPACE), *parts)
        for role in objects
        if role["kind"] in kinds and not role["metadata"]["name"].startswith("inquest-workflow-")
        if role["metadata"]["name"] != "inquest-test"  # for the time of `helm test`
        for rule in role["rules"]
        for parts in (
            (group, resource, verb)
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        )
    }


def test_the_chart_grants_what_the_code_says_and_nothing_else() -> None:
    assert rights(rendered(with_values())) == rights(render_rbac())
    assert rights(rendered(with_values(datastorage=SERVED))) == rights([*render_rbac(), *render_datastorage()])


PLACES = ["shop", "pay"]


def test_an_operator_of_some_namespaces_is_granted_what_the_code_says_and_nothing_else() -> None:
    found = rendered(with_values(rbac={"namespaced": PLACES, "people": False}))

    assert rights(found) == rights(render_confined(PLACES))
    assert settings_of(found)["kubernetes"]["namespaces"] == PLACES


def test_the_operators_requests_have_places_of_their_own_and_what_guards_cases_goes_first() -> None:
    objects = rendered(with_values(priorityAndFairness={"enabled": True, "shares": 7}))
    level = one(objects, "PriorityLevelConfiguration")
    schemas = sorted((each for each in objects if each["kind"] == "FlowSchema"), key=_precedence)

    assert level["spec"]["limited"]["nominalConcurrencyShares"] == 7
    assert [each["spec"]["priorityLevelConfiguration"]["name"] for each in schemas] == [
        "workload-high",
        level["metadata"]["name"],
    ]
    account = {"name": "inquest", "namespace": NAMESPACE}
    asked = [rule["subjects"][0]["serviceAccount"] for each in schemas for rule in each["spec"]["rules"]]
    assert asked == [account, account]
    off = rendered(with_values(priorityAndFairness={"enabled": False}))
    assert "FlowSchema" not in {each["kind"] for each in off}


def _precedence(schema: Object) -> int:
    found: int = schema["spec"]["matchingPrecedence"]
    return found


def test_a_release_for_one_team_brings_nothing_of_the_cluster_but_the_reading_of_what_is_installed() -> None:
    catalogue = {"enabled": True, "image": f"registry.example/kubectl@sha256:{'0' * 64}"}
    found = rendered({**values_of(TEAM), "catalogue": catalogue})

    beyond = {(each["kind"], each["metadata"]["name"]) for each in found if each["kind"] in OF_THE_CLUSTER}
    assert beyond == {("ClusterRole", "inquest-installed"), ("ClusterRoleBinding", "inquest-installed")}
    assert {each["metadata"]["namespace"] for each in found if each["metadata"]["name"] == MENDS} == {*PLACES}
    workflows = {each["spec"]["id"] for each in found if each["kind"] == "RemediationWorkflow"}
    assert not {"cordon-node", "drain-node"} & workflows, "no Role could let them"
    assert "increase-memory-limit" in workflows


MENDS = "inquest-workflow-increase-memory-limit"
OF_THE_CLUSTER = {
    *("ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Namespace"),
    *(f"{form}AdmissionPolicy{what}" for form in ("Validating", "Mutating") for what in ("", "Binding")),
}


def test_an_administrators_release_is_of_the_cluster_alone_and_binds_nobody() -> None:
    found = rendered(values_of(ADMINISTRATOR), f"-a={SIGNING}")

    kinds = {each["kind"] for each in found}
    assert kinds == OF_THE_CLUSTER - {"ClusterRoleBinding"}
    assert {each["metadata"]["name"] for each in found if each["kind"] == "ClusterRole"} == {
        role.name for role in PEOPLE
    }


def test_an_administrators_policies_are_those_that_the_release_of_the_team_would_bring() -> None:
    """The operator compares them word by word."""
    values = {**values_of(ADMINISTRATOR), "admissionPolicies": {"operatorNamespace": "watch"}}
    text = helm("template", "installed", str(CHART), "--namespace=admin", values=values)
    apart = [found for found in yaml.safe_load_all(text) if found]
    text = helm("template", "inquest", str(CHART), "--namespace=watch", values=with_values())
    beside = [found for found in yaml.safe_load_all(text) if found]

    def policies(objects: list[Object]) -> list[Object]:
        return [{**each, "metadata": each["metadata"]["name"]} for each in objects if "AdmissionPolicy" in each["kind"]]

    assert policies(apart) == policies(beside)
    assert "system:serviceaccount:watch:inquest" in json.dumps(policies(apart))


@pytest.mark.parametrize(
    "values",
    [
        {"settings": {"intake": {"enabled": True, "token_file": "/run/secrets/senders/token"}}},
        {"settings": {"intake": {"enabled": True}}, "intake": {"tokenReviews": True}},
    ],
    ids=["a mounted token", "an administrator's binding"],
)
def test_a_door_for_one_team_opens_where_senders_can_be_known(values: Object) -> None:
    found = rendered(with_values(rbac={"namespaced": ["shop"], "people": False}, **values))

    assert settings_of(found)["intake"]["enabled"] is True
    assert rights(found) == rights(render_confined(["shop"])), "the right is the administrator's to give"


def test_a_release_says_who_may_decide_and_where() -> None:
    approvers = ["jane", {"group": "oncall"}, {"user": "bob", "namespaces": ["shop", "pay"]}]
    values = {**IMAGE, "rbac": {"approvers": approvers}}
    told = helm("install", "inquest", str(CHART), f"--namespace={NAMESPACE}", "--dry-run=client", values=values)

    said = told.partition("Who may decide approval requests:\n")[2].splitlines()[:4]

    assert said == ["  jane: everywhere", "  group oncall: everywhere", "  bob: shop, pay", ""]


def test_what_a_release_says_next_is_an_upgrade_with_the_values_file() -> None:
    told = helm("install", "inquest", str(CHART), f"--namespace={NAMESPACE}", "--dry-run=client", values=IMAGE)
    notes = told.partition("NOTES:")[2]

    upgrades = [line.strip() for line in notes.splitlines() if "helm upgrade" in line]
    assert len(upgrades) == 1
    assert upgrades[0].startswith(
        f"helm upgrade inquest CHART -n {NAMESPACE} -f values.yaml --set catalogue.enabled=true "
    )


def test_decisions_are_signed_where_the_server_can() -> None:
    kinds = [{each["kind"] for each in rendered(with_values(), *options)} for options in ((), (f"-a={SIGNING}",))]

    assert "MutatingAdmissionPolicy" not in kinds[0]
    assert "MutatingAdmissionPolicy" in kinds[1]


def test_the_policies_name_the_account_of_the_release() -> None:
    found = rendered({**IMAGE, "serviceAccount": {"name": "detective"}, "execution": {"namespace": "remedies"}})
    (policy,) = [
        each
        for each in found
        if (each["kind"], each["metadata"]["name"]) == ("ValidatingAdmissionPolicy", "inquest-approval-decision")
    ]

    text = json.dumps(policy)
    assert f"system:serviceaccount:{NAMESPACE}:detective" in text
    assert "system:serviceaccount:remedies:" in text
    assert "__" not in json.dumps(found)


# --- what stays, what is optional -----------------------------------------------------------------------------------


def test_what_cannot_be_made_again_is_kept_at_an_uninstall() -> None:
    def kept(**changes: Any) -> set[str]:
        annotations = ((each, each["metadata"].get("annotations") or {}) for each in rendered(with_values(**changes)))
        return {each["kind"] for each, found in annotations if found.get("helm.sh/resource-policy") == "keep"}

    assert kept() == {"CustomResourceDefinition", "PersistentVolumeClaim", "Namespace"}
    assert kept(crds={"keep": False}, persistence={"keep": False}) == {"Namespace"}


def test_a_network_policy_denies_what_it_does_not_list() -> None:
    policy = {"enabled": True, "apiServerCIDRs": ["10.0.0.1/32"]}
    found = one(rendered(with_values(networkPolicy=policy, evidence={"enabled": True})), "NetworkPolicy")["spec"]

    assert found["policyTypes"] == ["Ingress", "Egress"]
    # The evidence port takes nobody without the API server's certificate.
    assert [[port["port"] for port in rule["ports"]] for rule in found["ingress"]] == [["health"], ["evidence"]]
    assert [rule.get("from") is None for rule in found["ingress"]] == [False, True]
    assert [port["port"] for rule in found["egress"] for port in rule["ports"]] == [53, 53, 443, 6443]


WORLD = (
    *("0.0.0.0/0", "0.0.0.0/1", "128.0.0.0/1", "0.0.0.0/00", "10.0.0.0/7"),
    *("::/0", "::/1", "8000::/1", "2000::/3", "0:0:0:0:0:0:0:0/0", "2600::/31"),
    *("::ffff:0.0.0.0/96", "::FFFF:0:0/97", "0:0:0:0:0:ffff:0:0/96", "64:ff9b::/96", "0064:FF9B::/97"),
)
"""Ranges as somebody would write them who means everything; the last row is IPv4 in the clothes of IPv6."""


def range_in(place: str, cidr: str) -> Object:
    """Values that let out to this range, and to the API server at one address."""
    rules = [{"to": [{"ipBlock": {"cidr": "10.0.0.7/32"}}, {"ipBlock": {"cidr": cidr}}]}]
    policy = {"enabled": True, "apiServerCIDRs": ["10.0.0.1/32"]}
    if place == "apiServerCIDRs":
        return {"networkPolicy": {**policy, "apiServerCIDRs": ["10.0.0.1/32", cidr]}}
    if place == "extraEgress":
        return {"networkPolicy": {**policy, "extraEgress": rules}}
    served: Object = {"deployment": {**SERVED["deployment"], "egress": rules}}
    return {"networkPolicy": policy, "datastorage": served}


PLACES_OF_RANGES = {
    "apiServerCIDRs": "networkPolicy.apiServerCIDRs",
    "extraEgress": "networkPolicy.extraEgress",
    "egress": "datastorage.deployment.egress",
}


@pytest.mark.parametrize("place", PLACES_OF_RANGES)
@pytest.mark.parametrize("cidr", WORLD)
def test_a_range_that_is_too_wide_is_refused_by_its_size(cidr: str, place: str) -> None:
    with pytest.raises(Refused, match=rf"{PLACES_OF_RANGES[place]}: {re.escape(cidr)} (is too wide|has no prefix)"):
        rendered(with_values(**range_in(place, cidr)))


@pytest.mark.parametrize(
    "cidr", ["10.0.0.0/8", "192.0.2.7/32", "fd00:1234::/48", "2001:db8::/32", "64:ff9b::a00:0/104"]
)
def test_a_range_of_an_organisation_is_accepted(cidr: str) -> None:
    (policy, *_) = [
        one for one in rendered(with_values(**range_in("extraEgress", cidr))) if one["kind"] == "NetworkPolicy"
    ]

    assert cidr in json.dumps(policy["spec"]["egress"])


PORTS = {"apiServerPorts": [6443]}


def test_nothing_that_goes_out_is_held_where_nobody_knows_the_port_of_the_api_server() -> None:
    rules = [{"to": [{"ipBlock": {"cidr": "10.1.1.1/32"}}]}]
    found = rendered(with_values(datastorage=SERVED, networkPolicy={"extraEgress": rules}))
    told = helm("install", "inquest", str(CHART), f"--namespace={NAMESPACE}", "--dry-run=client", values=with_values())

    for name in ("inquest", "inquest-datastorage"):
        policy = one(found, "NetworkPolicy", name)["spec"]
        assert (policy["policyTypes"], "egress" in policy) == (["Ingress"], False)
    assert "nobody knows the API server's port" in told.partition("NOTES:")[2]


def test_network_policies_are_on_where_nobody_said_anything_and_the_cluster_serves_them() -> None:
    known, off = (rendered(with_values(networkPolicy=each)) for each in (PORTS, {"enabled": False}))
    found = one(known, "NetworkPolicy")["spec"]

    assert found["policyTypes"] == ["Ingress", "Egress"]
    assert [port["port"] for rule in found["ingress"] for port in rule["ports"]] == ["health", "metrics"]
    assert ports_out(found) == {53, 5353, 443, 6443}
    assert "cidr" not in json.dumps(found)
    assert [each for each in off if each["kind"] == "NetworkPolicy"] == []


def ports_out(policy: Object) -> set[int]:
    return {port["port"] for rule in policy["egress"] for port in rule["ports"]}


def test_a_release_that_says_nothing_of_networks_reaches_every_address_of_its_values() -> None:
    settings = {
        "model": {"provider": "openai", "endpoint": "http://[fd00::1]:11434/v1", "name": "m"},
        "prometheus": {"url": "http://prometheus.monitoring"},
        "loki": {"url": "https://loki.example:3100/x"},
    }
    proxy = [{"name": "HTTPS_PROXY", "value": "http://proxy.example:3128"}]
    found = rendered(with_values(settings=settings, extraEnv=proxy, datastorage=SERVED, networkPolicy=PORTS))

    assert ports_out(one(found, "NetworkPolicy")["spec"]) == {53, 5353, 443, 6443, 11434, 80, 3100, 3128, 8080}
    assert ports_out(one(found, "NetworkPolicy", "inquest-datastorage")["spec"]) >= {53, 443, 6443, 5432}


def test_what_goes_out_is_not_held_where_a_secret_holds_an_address_and_the_release_says_so() -> None:
    hidden = {"name": "INQUEST_MODEL__PROXY", "valueFrom": {"secretKeyRef": {"name": "proxy", "key": "url"}}}
    rules = [{"to": [{"ipBlock": {"cidr": "10.1.1.1/32"}}]}]
    values = with_values(extraEnv=[hidden], networkPolicy=PORTS)

    key = {**hidden, "name": "INQUEST_MODEL__API_KEY"}

    unknown = one(rendered(values), "NetworkPolicy")["spec"]
    held = one(rendered({**values, "extraEnv": [key]}), "NetworkPolicy")["spec"]
    known = one(rendered({**values, "networkPolicy": {**PORTS, "extraEgress": rules}}), "NetworkPolicy")["spec"]
    told = helm("install", "inquest", str(CHART), f"--namespace={NAMESPACE}", "--dry-run=client", values=values)

    assert (unknown["policyTypes"], "egress" in unknown) == (["Ingress"], False)
    assert held["policyTypes"] == known["policyTypes"] == ["Ingress", "Egress"]
    assert "not held: INQUEST_MODEL__PROXY" in told.partition("NOTES:")[2]


# --- what a platform asks of every chart ----------------------------------------------------------------------------

ZONES = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}


def test_pods_spread_by_the_labels_of_their_own_deployment_unless_told() -> None:
    own = {**ZONES, "labelSelector": {"matchLabels": {"a": "b"}}}
    found = rendered(with_values(topologySpreadConstraints=[ZONES, own], datastorage=SERVED))

    for name in ("inquest", "inquest-datastorage"):
        spec = one(found, "Deployment", name)["spec"]
        spread = spec["template"]["spec"]["topologySpreadConstraints"]
        assert spread == [{**ZONES, "labelSelector": spec["selector"]}, own]


def test_annotations_stand_where_they_are_given() -> None:
    words = {"deploymentAnnotations": {"d": "1"}, "serviceAnnotations": {"s": "2"}, "podAnnotations": {"p": "3"}}
    found = rendered(with_values(**words, datastorage=SERVED))

    deployment = one(found, "Deployment")
    assert deployment["metadata"]["annotations"] == {"d": "1"}
    assert deployment["spec"]["template"]["metadata"]["annotations"]["p"] == "3"
    assert one(found, "Deployment", "inquest-datastorage")["metadata"]["annotations"] == {"d": "1"}
    services = [one(found, "Service"), one(found, "Service", "data-storage-service")]
    assert [each["metadata"]["annotations"] for each in services] == [{"s": "2"}] * 2


@pytest.mark.parametrize(
    ("repository", "mirrored"),
    [
        ("docker.io/openpolicyagent/opa", "mirror.example/all/openpolicyagent/opa"),
        ("localhost/inquest/opa", "mirror.example/all/inquest/opa"),
        ("registry:5000/opa", "mirror.example/all/opa"),
        ("openpolicyagent/opa", "mirror.example/all/openpolicyagent/opa"),
    ],
)
def test_all_images_come_from_the_registry_of_the_platform(repository: str, mirrored: str) -> None:
    digest = f"sha256:{'1' * 64}"
    values = {
        "global": {"imageRegistry": "mirror.example/all", "others": 1},
        "image": {"repository": repository, "tag": "1"},
        "opa": {"image": {"repository": repository, "digest": digest}},
        "catalogue": {"enabled": True, "image": f"{repository}@{digest}"},
    }
    found = rendered({**values, "datastorage": SERVED})

    boxes = [
        box for each in found if each["kind"] == "Deployment" for box in each["spec"]["template"]["spec"]["containers"]
    ]
    assert {box["name"]: box["image"] for box in boxes} == {
        "operator": f"{mirrored}:1",
        "datastorage": f"{mirrored}:1",
        "opa": f"{mirrored}@{digest}",
    }
    assert one(found, "Pod", "inquest-test")["spec"]["containers"][0]["image"] == f"{mirrored}:1"
    images = set(
        re.findall(
            r'"image": "([^"]*@sha256[^"]*)"', json.dumps([w for w in found if w["kind"] == "RemediationWorkflow"])
        )
    )
    assert images == {f"{mirrored}@{digest}"}


def test_what_else_a_pod_may_need_is_put_into_it() -> None:
    source, first = {"secretRef": {"name": "proxies"}}, {"name": "first", "image": "x"}
    pod = pod_of(rendered(with_values(envFrom=[source], initContainers=[first])))

    assert pod["initContainers"] == [first]
    assert {box["name"]: box.get("envFrom") for box in pod["containers"]} == {"operator": [source], "opa": None}


def test_further_objects_are_of_the_release_and_may_hold_templates() -> None:
    def extra(name: str) -> Object:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}

    given = [extra("{{ .Release.Name }}-one"), yaml.safe_dump(extra('{{ include "inquest.fullname" . }}-two'))]
    found = rendered(with_values(extraObjects=given))

    assert {"inquest-one", "inquest-two"} <= {each["metadata"]["name"] for each in found}


ISSUER = {"enabled": True, "issuerRef": {"name": "internal", "kind": "ClusterIssuer"}}


def test_cert_manager_makes_the_certificate_that_the_door_shows() -> None:
    manager = {**ISSUER, "dnsNames": ["inquest.example.org"], "duration": "2160h"}
    found = rendered(with_values(settings={"intake": {"enabled": True}}, intake={"certManager": manager}))

    spec = one(found, "Certificate", "inquest-intake-tls")["spec"]
    volumes = {each["name"]: each for each in pod_of(found)["volumes"]}
    assert spec["dnsNames"][0] == f"inquest.{NAMESPACE}.svc"
    assert "inquest.example.org" in spec["dnsNames"]
    assert spec["issuerRef"] == {"name": "internal", "kind": "ClusterIssuer", "group": "cert-manager.io"}
    assert (spec["duration"], "renewBefore" in spec) == ("2160h", False)
    assert volumes["intake"]["secret"]["secretName"] == spec["secretName"]
    assert settings_of(found)["intake"]["tls_certificate"]


def test_the_page_and_the_picture_of_the_chart_say_what_is_there() -> None:
    page, about = (CHART / "README.md").read_text(), yaml.safe_load((CHART / "Chart.yaml").read_text())
    picture = base64.b64decode(about["icon"].removeprefix("data:image/svg+xml;base64,"))

    assert picture == (CHART / "icon.svg").read_bytes()
    for key in ("global.imageRegistry", "opa.image.digest", "networkPolicy.enabled", "intake.certManager.enabled"):
        assert f"| `{key}` |" in page
    top = {row.split("`")[1].partition(".")[0] for row in page.splitlines() if row.startswith("| `")}
    assert top == set(yaml.safe_load((CHART / "values.yaml").read_text()))


# --- cases for readers ----------------------------------------------------------------------------------------------


def test_the_api_server_can_check_the_certificate_that_the_chart_makes_for_evidence() -> None:
    found = rendered(with_values(evidence={"enabled": True}))
    api, secret = one(found, "APIService", API_SERVICE), one(found, "Secret", "inquest-evidence")

    ca, chain = (x509.load_pem_x509_certificate(base64.b64decode(secret["data"][key])) for key in ("ca.crt", "tls.crt"))

    assert api["spec"]["caBundle"] == secret["data"]["ca.crt"]
    assert "insecureSkipTLSVerify" not in api["spec"]
    chain.verify_directly_issued_by(ca)
    names = chain.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    service = api["spec"]["service"]
    assert names.get_values_for_type(x509.DNSName) == [f"{service['name']}.{service['namespace']}.svc"]
    assert one(found, "Service", service["name"])["spec"]["publishNotReadyAddresses"]
    assert settings_of(found)["evidence"]["enabled"]


@pytest.mark.parametrize(
    "values",
    [{}, {"evidence": {"enabled": True}, "rbac": {"namespaced": ["shop"], "people": False}}],
    ids=["as the chart comes", "for one team"],
)
def test_without_the_api_for_cases_nothing_of_it_is_installed(values: Object) -> None:
    found = rendered(with_values(**values))

    assert [each["metadata"]["name"] for each in found if "evidence" in each["metadata"]["name"]] == []
    assert "evidence" not in settings_of(found)
    assert "evidence" not in json.dumps(pod_of(found))


def test_a_certificate_of_ones_own_takes_the_place_of_the_charts() -> None:
    found = rendered(with_values(evidence={"enabled": True, "tlsSecret": "mine", "caBundle": "PEM"}))

    assert base64.b64decode(one(found, "APIService", API_SERVICE)["spec"]["caBundle"]) == b"PEM"
    assert [each for each in found if each["kind"] == "Secret"] == []
    volumes = {each["name"]: each for each in pod_of(found)["volumes"]}
    assert volumes["evidence"]["secret"]["secretName"] == "mine"


# --- monitoring -----------------------------------------------------------------------------------------------------

RUNBOOK = files.ROOT / "docs" / "how-to" / "answer-an-alert.md"
ENDINGS = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
KNOWN = {
    f"{collector.name}{ending}" for collector in REGISTRY.collect() for ending in ENDINGS.get(collector.type, ("",))
}
"""Names as they stand in /metrics."""


def full_rules() -> Object:
    found: Object = one(rendered(with_values(prometheusRule={"enabled": True})), "PrometheusRule")["spec"]
    return found


def alerts() -> list[Object]:
    return [rule for group in full_rules()["groups"] for rule in group["rules"]]


def test_every_alert_asks_for_metrics_that_the_product_has() -> None:
    asked = {name for rule in alerts() for name in re.findall(r"inquest_\w+", rule["expr"])}

    assert asked
    assert asked <= KNOWN


def test_every_alert_leads_to_a_section_that_says_what_to_do() -> None:
    sections = {line[3:].strip().lower() for line in RUNBOOK.read_text().splitlines() if line.startswith("## ")}

    led = {rule["annotations"]["runbook_url"].partition("#")[2]: rule["alert"] for rule in alerts()}

    assert {alert.lower(): alert for alert in led.values()} == led
    assert set(led) == sections


def promtool(*arguments: str | Path) -> str:
    """What Prometheus' own tool says; a failure is told with its words."""
    command = [unpacked("prometheus", "promtool"), *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def test_prometheus_itself_can_read_the_alerts(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump(full_rules()))

    assert f"{len(alerts())} rules found" in promtool("check", "rules", rules)


def test_every_alert_fires_on_what_it_is_for_and_on_nothing_else(tmp_path: Path) -> None:
    """What a message says is not looked at here."""
    groups = full_rules()["groups"]
    for group in groups:
        for rule in group["rules"]:
            rule.pop("annotations")
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    cases = yaml.safe_load((Path(__file__).parent / "alerts.yaml").read_text())
    (tmp_path / "cases.yaml").write_text(yaml.safe_dump(cases))

    looked = [test for case in cases["tests"] for test in case["alert_rule_test"]]
    fired, quiet = ({test["alertname"] for test in looked if bool(test["exp_alerts"]) is yes} for yes in (True, False))

    assert fired == quiet == {rule["alert"] for rule in alerts()}
    promtool("test", "rules", tmp_path / "cases.yaml")


def dashboard() -> Object:
    found = one(rendered(with_values(dashboard={"enabled": True})), "ConfigMap", "inquest-dashboard")
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    read: Object = json.loads(found["data"]["inquest.json"])
    return read


def test_every_panel_of_the_dashboard_asks_for_metrics_that_the_product_has() -> None:
    panels = [panel for panel in dashboard()["panels"] if panel["type"] != "row"]

    asked = [re.findall(r"\b((?:inquest|process)_\w+)\{", query["expr"]) for one in panels for query in one["targets"]]

    assert len(panels) > 15
    assert all(asked)
    assert {name for names in asked for name in names} <= KNOWN


def test_prometheus_itself_can_read_every_query_of_the_dashboard(tmp_path: Path) -> None:
    queries = [query["expr"] for panel in dashboard()["panels"] for query in panel.get("targets", [])]
    rules = [{"record": f"panel:{number}", "expr": query} for number, query in enumerate(queries)]
    path = tmp_path / "queries.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))

    assert f"{len(queries)} rules found" in promtool("check", "rules", path)


def test_panels_of_the_dashboard_do_not_overlap() -> None:
    squares = [
        (panel["gridPos"]["y"] + down, panel["gridPos"]["x"] + across)
        for panel in dashboard()["panels"]
        for down in range(panel["gridPos"]["h"])
        for across in range(panel["gridPos"]["w"])
    ]

    assert len(squares) == len(set(squares))
    assert max(across for _, across in squares) < 24


def endpoints(kind: str, **values: Any) -> Object:
    spec = one(rendered(with_values(**values)), kind)["spec"]
    (found,) = spec.get("endpoints") or spec["podMetricsEndpoints"]
    assert isinstance(found, dict)
    return found


def test_metrics_ask_for_a_token_and_monitors_show_one() -> None:
    on, secret = {"enabled": True}, {"name": "prometheus-token", "key": "token"}
    shown = endpoints("ServiceMonitor", serviceMonitor=on)
    given = endpoints("ServiceMonitor", serviceMonitor={**on, "tokenSecret": secret})
    pods = endpoints("PodMonitor", podMonitor={**on, "tokenSecret": secret})
    free = endpoints("PodMonitor", podMonitor=on, metrics={"authentication": "none"})

    assert settings_of(rendered(with_values()))["server"]["authentication"] == "kubernetes"
    assert shown["bearerTokenFile"] == "/var/run/secrets/kubernetes.io/serviceaccount/token"
    assert given["authorization"] == pods["authorization"] == {"credentials": secret}
    assert not {"authorization", "bearerTokenFile"} & set(free)
    assert "bearerTokenFile" not in {*given, *pods}


def test_metrics_that_ask_nobody_are_not_open_to_the_cluster() -> None:
    policy = one(rendered(with_values(metrics={"authentication": "none"})), "NetworkPolicy")["spec"]

    assert "metrics" not in {port["port"] for rule in policy["ingress"] for port in rule["ports"]}


def test_the_account_of_the_test_of_a_release_may_read_readiness_and_goes_with_it() -> None:
    found = [each for each in rendered(with_values()) if each["metadata"]["name"] == "inquest-test"]

    assert {each["metadata"]["annotations"]["helm.sh/hook"] for each in found} == {"test"}
    (role,) = [each for each in found if each["kind"] == "ClusterRole"]
    assert role["rules"] == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]


# --- who may decide -----------------------------------------------------------------------------------------------


def approvers(**rbac: Any) -> dict[str, list[str]]:
    """Who may decide, by namespace; an empty one is the whole cluster."""
    found = rendered(with_values(rbac=rbac))
    bound = [each for each in found if each.get("roleRef", {}).get("name") == "inquest-approver"]
    places = [each["metadata"].get("namespace", "") for each in bound]
    assert len(places) == len({*places}), "one binding for each place"
    assert all(
        each["kind"] == ("RoleBinding" if place else "ClusterRoleBinding")
        for each, place in zip(bound, places, strict=True)
    )
    return {
        place: [f"{subject['kind']} {subject['name']}" for subject in each["subjects"]]
        for each, place in zip(bound, places, strict=True)
    }


EVERYONE = ["jane", {"user": "bob"}, {"group": "oncall"}]
NAMED = ["User jane", "User bob", "Group oncall"]


def test_who_may_decide_may_so_wherever_cases_may_stand() -> None:
    assert approvers(approvers=EVERYONE) == {"": NAMED}
    assert approvers(approvers=EVERYONE, namespaced=["shop", "pay"]) == {NAMESPACE: NAMED, "shop": NAMED, "pay": NAMED}


def test_who_may_decide_in_listed_namespaces_may_so_nowhere_else() -> None:
    owners = {"group": "owners", "namespaces": ["shop", "pay"]}
    where = {"shop": ["Group owners"], "pay": ["Group owners"]}

    assert approvers(approvers=[owners]) == where
    assert approvers(approvers=["jane", owners]) == {"": ["User jane"], **where}
    assert approvers(approvers=["jane", {**owners, "namespaces": ["shop"]}], namespaced=["shop"]) == {
        NAMESPACE: ["User jane"],
        "shop": ["User jane", "Group owners"],
    }


def test_nobody_may_decide_unless_the_values_name_somebody() -> None:
    assert approvers() == {}
