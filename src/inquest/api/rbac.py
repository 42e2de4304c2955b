"""Who may do what: one table, from which the manifests, the chart, the docs and the self-check come.

`OPERATOR`, `HOME`, `EXECUTION` and `INVESTIGATOR` are what the accounts of Inquest get, `REVIEWS` and
`DATASTORAGE_USE` those of a DataStorage that is served by itself and of who uses it, `PEOPLE` what people can be
given, `NEVER` what Inquest's accounts must not have and what is asked at start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from inquest.api.meta import GROUP
from inquest.api.registry import PLURALS

NAMESPACE: Final = "inquest-system"
EXECUTION_NAMESPACE: Final = "inquest-workflows"
SERVICE_ACCOUNT: Final = "inquest"
INVESTIGATOR_ACCOUNT: Final = "inquest-investigator"
DATASTORAGE_ACCOUNT: Final = "inquest-datastorage"
DATASTORAGE_CLIENT: Final = "data-storage-client"
"""The role's name on Kubernaut, so that a binding fits either service."""
DATASTORAGE_SERVICE: Final = "data-storage-service"

Manifest = dict[str, Any]
Words = tuple[str, ...]

READ: Final[Words] = ("get", "list", "watch")
CREATE: Final[Words] = ("create",)
CHANGE: Final[Words] = ("create", "update", "patch", "delete")


@dataclass(frozen=True)
class Rule:
    """One rule of a role."""

    group: str
    resources: Words
    verbs: Words
    names: Words = ()
    """Of these objects only; empty: of all."""

    def manifest(self) -> Manifest:
        """The rule as Kubernetes writes it."""
        named = {"resourceNames": list(self.names)} if self.names else {}
        return {"apiGroups": [self.group], "resources": list(self.resources), **named, "verbs": list(self.verbs)}


@dataclass(frozen=True)
class PeopleRole:
    """A ClusterRole for people; `aggregated_to` names a built-in role that takes it in."""

    name: str
    rules: tuple[Rule, ...]
    aggregated_to: str | None = None


@dataclass(frozen=True)
class Question:
    """One right to ask about; an empty group is the core group."""

    group: str
    resource: str
    subresource: str
    verb: str

    @property
    def text(self) -> str:
        """`verb resource/subresource.group`, for messages and settings."""
        path = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        return f"{self.verb} {path}.{self.group}" if self.group else f"{self.verb} {path}"


# --- what Inquest's own accounts get ---------------------------------------------------------------------

_CASE_KINDS: Final[Words] = ("signals", "investigations", "remediationapprovalrequests", "workflowexecutions")
_CATALOGUE_KINDS: Final[Words] = ("actiontypes", "remediationworkflows")
_AUTHORIZATION: Final = "authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"

OPERATOR: Final[tuple[Rule, ...]] = (
    Rule(GROUP, _CASE_KINDS, (*READ, "create", "patch", "delete")),
    Rule(GROUP, _CATALOGUE_KINDS, (*READ, "patch")),
    Rule(GROUP, tuple(f"{plural}/status" for plural in PLURALS), ("get", "update", "patch")),
    Rule(GROUP, tuple(f"{plural}/finalizers" for plural in PLURALS), ("update",)),
    Rule("", ("events",), ("create", "patch")),
    Rule("events.k8s.io", ("events",), ("create", "patch")),
    Rule("", ("namespaces",), READ),
    Rule("coordination.k8s.io", ("leases",), READ),
    Rule("apiextensions.k8s.io", ("customresourcedefinitions",), READ),
    Rule(
        _ADMISSION,
        (
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
        ),
        READ,
    ),
    Rule("authentication.k8s.io", ("tokenreviews",), CREATE),
    Rule(_AUTHORIZATION, ("subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"), CREATE),
)
"""The operator, everywhere."""

HOME: Final[tuple[Rule, ...]] = (
    # Slots of the journal are created once: who could change one could forge the log.
    Rule("", ("configmaps",), ("create", "get", "list", "delete", "deletecollection")),
    Rule("coordination.k8s.io", ("leases",), (*READ, *CHANGE)),
)
"""The operator, in its own namespace."""

EXECUTION: Final[tuple[Rule, ...]] = (
    Rule("batch", ("jobs",), ("create", *READ, "delete")),
    Rule("", ("pods", "pods/log"), READ),
    Rule("", ("events",), READ),
    Rule("", ("configmaps",), ("get",)),
)
"""The operator, in the execution namespace."""

INVESTIGATOR: Final[tuple[Rule, ...]] = (
    Rule(
        "",
        (
            "pods",
            "pods/log",
            "events",
            "services",
            "endpoints",
            "configmaps",
            "nodes",
            "namespaces",
            "persistentvolumes",
            "persistentvolumeclaims",
            "resourcequotas",
            "limitranges",
            "serviceaccounts",
            "replicationcontrollers",
        ),
        READ,
    ),
    Rule("events.k8s.io", ("events",), READ),
    Rule("discovery.k8s.io", ("endpointslices",), READ),
    Rule("apps", ("deployments", "statefulsets", "daemonsets", "replicasets", "controllerrevisions"), READ),
    Rule("batch", ("jobs", "cronjobs"), READ),
    Rule("autoscaling", ("horizontalpodautoscalers",), READ),
    Rule("policy", ("poddisruptionbudgets",), READ),
    Rule("networking.k8s.io", ("networkpolicies", "ingresses", "ingressclasses"), READ),
    Rule("gateway.networking.k8s.io", ("httproutes", "grpcroutes"), READ),
    Rule("storage.k8s.io", ("storageclasses", "volumeattachments", "csidrivers", "csinodes"), READ),
    Rule("scheduling.k8s.io", ("priorityclasses",), READ),
    Rule("node.k8s.io", ("runtimeclasses",), READ),
    Rule("coordination.k8s.io", ("leases",), READ),
    Rule(_ADMISSION, ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"), READ),
    Rule("apiregistration.k8s.io", ("apiservices",), READ),
    Rule("rbac.authorization.k8s.io", ("roles", "rolebindings", "clusterroles", "clusterrolebindings"), READ),
    Rule("metrics.k8s.io", ("pods", "nodes"), READ),
    Rule("argoproj.io", ("applications", "applicationsets", "appprojects", "rollouts"), READ),
    Rule("kustomize.toolkit.fluxcd.io", ("kustomizations",), READ),
    Rule("helm.toolkit.fluxcd.io", ("helmreleases",), READ),
    Rule(
        "source.toolkit.fluxcd.io",
        ("buckets", "gitrepositories", "helmcharts", "helmrepositories", "ocirepositories"),
        READ,
    ),
    Rule("cert-manager.io", ("certificates", "certificaterequests", "issuers", "clusterissuers"), READ),
    Rule("acme.cert-manager.io", ("orders", "challenges"), READ),
    Rule(
        "networking.istio.io", ("virtualservices", "destinationrules", "gateways", "serviceentries", "sidecars"), READ
    ),
    Rule("security.istio.io", ("authorizationpolicies", "peerauthentications", "requestauthentications"), READ),
    Rule("linkerd.io", ("serviceprofiles",), READ),
    Rule("policy.linkerd.io", ("authorizationpolicies", "httproutes", "servers", "serverauthorizations"), READ),
    Rule("monitoring.coreos.com", ("podmonitors", "prometheusrules", "servicemonitors"), READ),
)
"""Whoever investigates, in the namespaces that are watched: an explicit list, and reading only."""

CLUSTER_SCOPED: Final[frozenset[tuple[str, str]]] = frozenset(
    {
        ("", "nodes"),
        ("", "namespaces"),
        ("", "persistentvolumes"),
        ("networking.k8s.io", "ingressclasses"),
        *(("storage.k8s.io", name) for name in ("storageclasses", "volumeattachments", "csidrivers", "csinodes")),
        ("scheduling.k8s.io", "priorityclasses"),
        ("node.k8s.io", "runtimeclasses"),
        *((_ADMISSION, f"{form}webhookconfigurations") for form in ("validating", "mutating")),
        ("apiregistration.k8s.io", "apiservices"),
        *(("rbac.authorization.k8s.io", name) for name in ("clusterroles", "clusterrolebindings")),
        ("metrics.k8s.io", "nodes"),
        ("cert-manager.io", "clusterissuers"),
    }
)
"""Those of the investigator's kinds that stand in no namespace, by group: a Role cannot grant them."""


def of_the_cluster(found: Iterable[Rule]) -> tuple[Rule, ...]:
    """What is left of the rules for kinds that stand in no namespace."""
    return _kept(found, lambda kind: kind in CLUSTER_SCOPED)


def of_namespaces(found: Iterable[Rule]) -> tuple[Rule, ...]:
    """What is left of the rules for kinds that stand in a namespace."""
    return _kept(found, lambda kind: kind not in CLUSTER_SCOPED)


def _kept(found: Iterable[Rule], fits: Callable[[tuple[str, str]], bool]) -> tuple[Rule, ...]:
    parts = ((one, tuple(name for name in one.resources if fits((one.group, name)))) for one in found)
    return tuple(replace(one, resources=names) for one, names in parts if names)


REVIEWS: Final[tuple[Rule, ...]] = (
    Rule("authentication.k8s.io", ("tokenreviews",), CREATE),
    Rule(_AUTHORIZATION, ("subjectaccessreviews",), CREATE),
)
"""A served DataStorage: whose token it is and whether they may, nothing else."""

DATASTORAGE_USE: Final[tuple[Rule, ...]] = (Rule("", ("services",), CREATE, (DATASTORAGE_SERVICE,)),)
"""Who uses it, in its namespace: the right that it asks about. No Service can be created with it, since the API server
knows no name when it is asked whether one may be created."""

# --- what they must never have --------------------------------------------------------------------------

_STREAMS: Final = (
    ("pods", "exec"),
    ("pods", "attach"),
    ("pods", "portforward"),
    ("pods", "proxy"),
    ("services", "proxy"),
    ("nodes", "proxy"),
)
_ROLES: Final = ("roles", "clusterroles", "rolebindings", "clusterrolebindings")
_POLICIES: Final = (
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
)


def _ask(group: str, resources: Words, verbs: Words, subresource: str = "") -> tuple[Question, ...]:
    return tuple(Question(group, resource, subresource, verb) for resource in resources for verb in verbs)


NEVER: Final[tuple[Question, ...]] = (
    *_ask("", ("secrets",), (*READ, *CHANGE)),
    # GET alone opens a stream in some versions.
    *(Question("", resource, part, verb) for resource, part in _STREAMS for verb in ("get", "create")),
    *_ask("", ("pods",), ("update", "patch"), "ephemeralcontainers"),
    *_ask("", ("pods",), CHANGE),
    *_ask("apps", ("deployments", "statefulsets", "daemonsets", "replicasets"), CHANGE),
    *_ask("", ("serviceaccounts",), CREATE, "token"),
    *_ask("certificates.k8s.io", ("certificatesigningrequests",), ("update",), "approval"),
    *_ask("rbac.authorization.k8s.io", _ROLES, ("bind", "escalate", "create", "update", "patch")),
    *_ask("", ("users", "groups", "serviceaccounts"), ("impersonate",)),
    *_ask(_ADMISSION, _POLICIES, CHANGE),
    *_ask("apiextensions.k8s.io", ("customresourcedefinitions",), CHANGE),
    *_ask(GROUP, ("remediationapprovalrequests",), ("approve",)),
    *_ask("", ("configmaps",), ("update", "patch")),
    Question("*", "*", "", "*"),
)
"""Rights that Inquest asks about at start and every ten minutes; with one of them it is not ready."""

# --- what people can be given ------------------------------------------------------------------------------

_READ_ALL: Final = Rule(GROUP, PLURALS, READ)

PEOPLE: Final[tuple[PeopleRole, ...]] = (
    PeopleRole("inquest-viewer", (_READ_ALL,), "view"),
    PeopleRole("inquest-editor", (_READ_ALL, Rule(GROUP, ("signals", "investigations"), CHANGE)), "edit"),
    PeopleRole(
        "inquest-approver",
        (_READ_ALL, Rule(GROUP, ("remediationapprovalrequests",), ("update", "patch", "approve"))),
    ),
    PeopleRole("inquest-author", (Rule(GROUP, _CATALOGUE_KINDS, (*READ, *CHANGE)),)),
    PeopleRole("inquest-signal-source", (Rule(GROUP, ("signals",), CREATE),)),
)

# --- manifests ---------------------------------------------------------------------------------------------

_RBAC: Final = "rbac.authorization.k8s.io"


def render_rbac(
    namespace: str = NAMESPACE,
    execution_namespace: str = EXECUTION_NAMESPACE,
    service_account: str = SERVICE_ACCOUNT,
) -> list[Manifest]:
    """Every role and binding; the operator investigates itself, as it does by default."""
    account = {"kind": "ServiceAccount", "name": service_account, "namespace": namespace}
    return [
        *_cluster_wide("inquest-operator", OPERATOR, account),
        *_within(namespace, "inquest-operator", HOME, account),
        *_cluster_wide("inquest-investigator", INVESTIGATOR, account),
        *_within(execution_namespace, "inquest-execution", EXECUTION, account),
        *(people_role(role) for role in PEOPLE),
    ]


def render_datastorage(
    namespace: str = NAMESPACE,
    service_account: str = DATASTORAGE_ACCOUNT,
    client: str = SERVICE_ACCOUNT,
) -> list[Manifest]:
    """Account, roles and bindings of a DataStorage that is served by itself; `client` is the operator's account."""
    server = {"kind": "ServiceAccount", "name": service_account, "namespace": namespace}
    user = {"kind": "ServiceAccount", "name": client, "namespace": namespace}
    metadata = {"name": service_account, "namespace": namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        *_cluster_wide("inquest-datastorage", REVIEWS, server),
        *_within(namespace, DATASTORAGE_CLIENT, DATASTORAGE_USE, user),
    ]


def people_role(role: PeopleRole) -> Manifest:
    """The ClusterRole of a role for people."""
    found = _role("ClusterRole", {"name": role.name}, role.rules)
    if role.aggregated_to:
        label = f"{_RBAC}/aggregate-to-{role.aggregated_to}"
        found["metadata"]["labels"] = {label: "true"}
    return found


def _cluster_wide(name: str, found: tuple[Rule, ...], account: Manifest) -> Iterator[Manifest]:
    yield _role("ClusterRole", {"name": name}, found)
    yield _binding("ClusterRoleBinding", {"name": name}, "ClusterRole", account)


def _within(namespace: str, name: str, found: tuple[Rule, ...], account: Manifest) -> Iterator[Manifest]:
    yield _role("Role", {"name": name, "namespace": namespace}, found)
    yield _binding("RoleBinding", {"name": name, "namespace": namespace}, "Role", account)


def _role(kind: str, metadata: Manifest, found: tuple[Rule, ...]) -> Manifest:
    rules = [rule.manifest() for rule in found]
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, "rules": rules}


def _binding(kind: str, metadata: Manifest, role_kind: str, account: Manifest) -> Manifest:
    role = {"apiGroup": _RBAC, "kind": role_kind, "name": metadata["name"]}
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, "roleRef": role, "subjects": [account]}
