"""Who may do what: one table, from which the manifests, the chart, the docs and the self-check come.

`OPERATOR`, `HOME`, `EXECUTION` and `INVESTIGATOR` are what the accounts of Inquest get, `INSTALLED` and `WATCHED` what
is left of `OPERATOR` where it looks after single namespaces, `REVIEWS` and `DATASTORAGE_USE` those of a DataStorage
that is served by itself and of who uses it, `PEOPLE` what people can be given, `NEVER` what Inquest's accounts must not
have and what is asked at start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from inquest.api import names as api_names
from inquest.api.base import GROUP
from inquest.api.installation import (
    CONFINED_BINDING,
    DATASTORAGE_ACCOUNT,
    DATASTORAGE_CLIENT,
    DATASTORAGE_SERVICE,
    EXECUTION_NAMESPACE,
    NAMESPACE,
    SERVICE_ACCOUNT,
    WATCHING,
)
from inquest.api.registry import PLURALS

Manifest = dict[str, Any]
Words = tuple[str, ...]

READ: Final[Words] = ("get", "list", "watch")
LOOK: Final[Words] = ("get", "list")
"""Whoever asks once follows nothing."""
CREATE: Final[Words] = ("create",)
CHANGE: Final[Words] = ("create", "update", "patch", "delete")


@dataclass(frozen=True)
class AccessRule:
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
    rules: tuple[AccessRule, ...]
    aggregated_to: str | None = None


@dataclass(frozen=True)
class RequiredAccess:
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

_REQUESTS: Final = "remediationapprovalrequests"
_CASE_KINDS: Final[Words] = ("signals", "investigations", _REQUESTS, "workflowexecutions")
_CATALOGUE_KINDS: Final[Words] = ("actiontypes", "remediationworkflows")
_AUTHORIZATION: Final = "authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
_POLICIES: Final = (
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
)

_IN_FORCE: Final = AccessRule(
    _ADMISSION, ("validatingadmissionpolicies", "validatingadmissionpolicybindings"), ("list",)
)
_KINDS: Final = AccessRule("apiextensions.k8s.io", ("customresourcedefinitions",), LOOK)

INSTALLED: Final[tuple[AccessRule, ...]] = (_IN_FORCE, _KINDS)
"""What an administrator installs, read by every operator: the only right in the whole cluster of one that looks after
single namespaces."""

OPERATOR: Final[tuple[AccessRule, ...]] = (
    AccessRule(GROUP, _CASE_KINDS, (*READ, "create")),
    # An alert that is over is written into its Signal, and the mark of a run that is over is taken off.
    AccessRule(GROUP, ("signals", "workflowexecutions"), ("patch",)),
    # What is past its time goes; requests and runs go with their Investigation.
    AccessRule(GROUP, ("signals", "investigations"), ("delete",)),
    AccessRule(GROUP, _CATALOGUE_KINDS, READ),
    AccessRule(GROUP, tuple(f"{plural}/status" for plural in PLURALS), ("patch",)),
    AccessRule("", ("events",), ("create", "patch")),
    AccessRule("", ("namespaces",), LOOK),
    AccessRule("coordination.k8s.io", ("leases",), ("list", "watch")),
    _IN_FORCE,
    AccessRule("authentication.k8s.io", ("tokenreviews",), CREATE),
    AccessRule(_AUTHORIZATION, ("subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"), CREATE),
)
"""The operator, everywhere."""

HOME: Final[tuple[AccessRule, ...]] = (
    # Slots of the journal are created once: who could change one could forge the log.
    AccessRule("", ("configmaps",), ("create", "get", "list", "delete", "deletecollection")),
    AccessRule("coordination.k8s.io", ("leases",), (*LOOK, "create", "patch", "delete")),
)
"""The operator, in its own namespace."""

EXECUTION: Final[tuple[AccessRule, ...]] = (
    AccessRule("batch", ("jobs",), ("create", *READ, "delete")),
    AccessRule("", ("pods", "events"), ("list",)),
)
"""The operator, in the execution namespace."""

INVESTIGATOR: Final[tuple[AccessRule, ...]] = (
    AccessRule(
        "",
        (
            "pods",
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
        LOOK,
    ),
    AccessRule("", ("pods/log",), ("get",)),
    # Followed too, where they are a way in for Signals.
    AccessRule("", ("events",), READ),
    AccessRule("events.k8s.io", ("events",), LOOK),
    AccessRule("discovery.k8s.io", ("endpointslices",), LOOK),
    AccessRule("apps", ("deployments", "statefulsets", "daemonsets", "replicasets", "controllerrevisions"), LOOK),
    # Followed too: a run that ends is seen at once.
    AccessRule("batch", ("jobs",), READ),
    AccessRule("batch", ("cronjobs",), LOOK),
    AccessRule("autoscaling", ("horizontalpodautoscalers",), LOOK),
    AccessRule("policy", ("poddisruptionbudgets",), LOOK),
    AccessRule("networking.k8s.io", ("networkpolicies", "ingresses", "ingressclasses"), LOOK),
    AccessRule("gateway.networking.k8s.io", ("httproutes", "grpcroutes"), LOOK),
    # Kinds of no namespace are asked for by name too: a cause that names one is looked up before it is believed.
    AccessRule("storage.k8s.io", ("storageclasses", "volumeattachments", "csidrivers", "csinodes"), LOOK),
    AccessRule("scheduling.k8s.io", ("priorityclasses",), LOOK),
    AccessRule("node.k8s.io", ("runtimeclasses",), LOOK),
    AccessRule("coordination.k8s.io", ("leases",), LOOK),
    AccessRule(_ADMISSION, ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"), LOOK),
    AccessRule(_ADMISSION, ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings"), LOOK),
    AccessRule("apiregistration.k8s.io", ("apiservices",), LOOK),
    _KINDS,
    AccessRule("rbac.authorization.k8s.io", ("roles", "rolebindings", "clusterroles", "clusterrolebindings"), LOOK),
    AccessRule("metrics.k8s.io", ("pods", "nodes"), LOOK),
    AccessRule("argoproj.io", ("applications", "applicationsets", "appprojects", "rollouts"), LOOK),
    AccessRule("kustomize.toolkit.fluxcd.io", ("kustomizations",), LOOK),
    AccessRule("helm.toolkit.fluxcd.io", ("helmreleases",), LOOK),
    AccessRule(
        "source.toolkit.fluxcd.io",
        ("buckets", "gitrepositories", "helmcharts", "helmrepositories", "ocirepositories"),
        LOOK,
    ),
    AccessRule("cert-manager.io", ("certificates", "certificaterequests", "issuers", "clusterissuers"), LOOK),
    AccessRule("acme.cert-manager.io", ("orders", "challenges"), LOOK),
    AccessRule(
        "networking.istio.io", ("virtualservices", "destinationrules", "gateways", "serviceentries", "sidecars"), LOOK
    ),
    AccessRule("security.istio.io", ("authorizationpolicies", "peerauthentications", "requestauthentications"), LOOK),
    AccessRule("linkerd.io", ("serviceprofiles",), LOOK),
    AccessRule("policy.linkerd.io", ("authorizationpolicies", "httproutes", "servers", "serverauthorizations"), LOOK),
    AccessRule("monitoring.coreos.com", ("podmonitors", "prometheusrules", "servicemonitors"), LOOK),
)
"""Whoever investigates, in the namespaces that are watched: an explicit list, and reading only."""

CLUSTER_SCOPED: Final[frozenset[tuple[str, str]]] = frozenset(
    {
        *((_ADMISSION, name) for name in _POLICIES),
        ("authentication.k8s.io", "tokenreviews"),
        *(
            (_AUTHORIZATION, name)
            for name in ("subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews")
        ),
        ("", "nodes"),
        ("", "namespaces"),
        ("", "persistentvolumes"),
        ("networking.k8s.io", "ingressclasses"),
        *(("storage.k8s.io", name) for name in ("storageclasses", "volumeattachments", "csidrivers", "csinodes")),
        ("scheduling.k8s.io", "priorityclasses"),
        ("node.k8s.io", "runtimeclasses"),
        *((_ADMISSION, f"{form}webhookconfigurations") for form in ("validating", "mutating")),
        ("apiregistration.k8s.io", "apiservices"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        *(("rbac.authorization.k8s.io", name) for name in ("clusterroles", "clusterrolebindings")),
        ("metrics.k8s.io", "nodes"),
        ("cert-manager.io", "clusterissuers"),
    }
)
"""Those of our accounts' kinds that stand in no namespace, by group: a Role cannot grant them."""


def of_the_cluster(found: Iterable[AccessRule]) -> tuple[AccessRule, ...]:
    """What is left of the rules for kinds that stand in no namespace."""
    return _kept(found, lambda kind: kind in CLUSTER_SCOPED)


def of_namespaces(found: Iterable[AccessRule]) -> tuple[AccessRule, ...]:
    """What is left of the rules for kinds that stand in a namespace."""
    return _kept(found, lambda kind: kind not in CLUSTER_SCOPED)


def _kept(found: Iterable[AccessRule], fits: Callable[[tuple[str, str]], bool]) -> tuple[AccessRule, ...]:
    parts = ((one, tuple(name for name in one.resources if fits((one.group, name)))) for one in found)
    return tuple(replace(one, resources=names) for one, names in parts if names)


WATCHED: Final[tuple[AccessRule, ...]] = (
    *of_namespaces(OPERATOR),
    # A Role may give a namespace to be read by its name, which is all that a scope and an environment need.
    AccessRule("", ("namespaces",), ("get",)),
    # Whether an approver may approve is asked inside the namespace; the wide question needs a right in the cluster.
    AccessRule(_AUTHORIZATION, ("localsubjectaccessreviews",), CREATE),
)
"""The operator that looks after single namespaces, in each of them and in its own."""

TOKENS: Final = AccessRule("authentication.k8s.io", ("tokenreviews",), CREATE)
"""Whose token it is: only a role of the whole cluster can grant the question."""

REVIEWS: Final[tuple[AccessRule, ...]] = (
    TOKENS,
    AccessRule(_AUTHORIZATION, ("subjectaccessreviews",), CREATE),
)
"""A served DataStorage: whose token it is and whether they may, nothing else."""

DATASTORAGE_USE: Final[tuple[AccessRule, ...]] = (AccessRule("", ("services",), CREATE, (DATASTORAGE_SERVICE,)),)
"""Who uses it, in its namespace: the right that it asks about. No Service can be created with it, since the API server
knows no name when it is asked whether one may be created."""

# --- what is lost without one of them --------------------------------------------------------------------

LOSSES: Final[Mapping[tuple[str, str], str]] = {
    (GROUP, ""): "cases of this kind are neither read nor written",
    ("", "events"): "no Warning event of a target is read, and none is written on a case",
    ("", "namespaces"): "no namespace is known as managed or as production",
    ("", "configmaps"): "no journal can be kept, and causes in configuration are not found",
    ("", "pods"): "the pods of a target are not seen: most causes are not found, and Jobs that wait are not understood",
    ("", "pods/log"): "no log is read: causes that only a log names are not found",
    ("", "services"): "causes in Services are not found, nor what the target calls",
    ("", "endpoints"): "causes in Services are not found",
    ("", "nodes"): "causes on nodes are not found",
    ("", "persistentvolumes"): "causes in storage are not found",
    ("", "persistentvolumeclaims"): "causes in storage are not found",
    ("", "resourcequotas"): "causes in quotas are not found, and no remedy is held against them",
    ("", "limitranges"): "causes in limit ranges are not found",
    ("", "serviceaccounts"): "a missing account of a workload is not found",
    ("", "replicationcontrollers"): "what belongs to a ReplicationController is not followed to it",
    ("events.k8s.io", ""): "a model cannot look at events by their newer kind",
    ("discovery.k8s.io", ""): "Services without endpoints are not found",
    ("apps", ""): "workloads are not followed to their owner, and no rollout is seen",
    ("batch", "jobs"): "no workflow can run or be followed, and failing Jobs are not understood",
    ("batch", "cronjobs"): "Jobs are not followed to their CronJob",
    ("autoscaling", ""): "causes in autoscalers are not found, and a remedy may be taken back by one",
    ("policy", ""): "causes in disruption budgets are not found",
    ("networking.k8s.io", ""): "causes in network policies and Ingresses are not found",
    ("networking.k8s.io", "ingressclasses"): "causes in ingress classes are not found",
    ("gateway.networking.k8s.io", ""): "causes in Gateway routes are not found",
    ("storage.k8s.io", ""): "causes in storage classes and drivers are not found",
    ("scheduling.k8s.io", ""): "causes in priority classes are not found",
    ("node.k8s.io", ""): "causes in runtime classes are not found",
    ("coordination.k8s.io", ""): "no replica can prove that it lives: no case is worked on",
    ("apiextensions.k8s.io", ""): "a model cannot look at what describes a kind",
    (_ADMISSION, "validatingwebhookconfigurations"): "causes in webhooks are not found",
    (_ADMISSION, "mutatingwebhookconfigurations"): "causes in webhooks are not found",
    (_ADMISSION, "mutatingadmissionpolicies"): "causes in policies that change pods are not found",
    (_ADMISSION, "mutatingadmissionpolicybindings"): "causes in policies that change pods are not found",
    (_ADMISSION, ""): "nobody can say whether the admission policies are in force: no approval is used",
    ("authentication.k8s.io", ""): "senders of the intake cannot log in",
    (_AUTHORIZATION, ""): "nobody can say whether an approver may approve: no approval is used",
    ("apiregistration.k8s.io", ""): "causes in aggregated APIs are not found",
    ("rbac.authorization.k8s.io", ""): "causes in missing rights of workloads are not found",
    ("rbac.authorization.k8s.io", "clusterroles"): "which rights a workload has by roles of the cluster is not known",
    (
        "rbac.authorization.k8s.io",
        "clusterrolebindings",
    ): "which rights a workload has by roles of the cluster is not known",
    ("metrics.k8s.io", ""): "current use of memory and CPU is not known",
    ("metrics.k8s.io", "nodes"): "current use of a node's memory and CPU is not known",
    ("argoproj.io", ""): "Argo CD is not recognised: a remedy may be taken back by it",
    ("kustomize.toolkit.fluxcd.io", ""): "Flux is not recognised: a remedy may be taken back by it",
    ("helm.toolkit.fluxcd.io", ""): "Flux is not recognised: a remedy may be taken back by it",
    ("source.toolkit.fluxcd.io", ""): "sources of Flux cannot be looked at",
    ("cert-manager.io", ""): "causes in certificates are not found",
    ("cert-manager.io", "clusterissuers"): "causes in issuers of the cluster are not found",
    ("acme.cert-manager.io", ""): "causes in certificates are not found",
    ("networking.istio.io", ""): "causes in Istio are not found",
    ("security.istio.io", ""): "causes in Istio are not found",
    ("linkerd.io", ""): "causes in Linkerd are not found",
    ("policy.linkerd.io", ""): "causes in Linkerd are not found",
    ("monitoring.coreos.com", ""): "what is monitored cannot be looked at",
}
"""What stops working without a right, by group and resource; an empty resource: any other of the group."""


def lost_in_namespaces() -> dict[str, str]:
    """What an operator of single namespaces goes without, by `resource.group`, and what stops working with it."""
    wide = (*of_the_cluster(OPERATOR), *of_the_cluster(INVESTIGATOR))
    kept = {(one.group, name) for one in INSTALLED for name in one.resources} | _FOUND_ANOTHER_WAY
    gone = ((one.group, name) for one in wide for name in one.resources if (one.group, name) not in kept)
    return {f"{name}.{group}" if group else name: loss_of(group, name) for group, name in gone}


_FOUND_ANOTHER_WAY: Final = {
    ("", "namespaces"),  # by name, `WATCHED`
    (_AUTHORIZATION, "subjectaccessreviews"),  # the local one, `WATCHED`
    # Every account may ask about itself.
    (_AUTHORIZATION, "selfsubjectaccessreviews"),
    (_AUTHORIZATION, "selfsubjectrulesreviews"),
}


def loss_of(group: str, resource: str) -> str:
    """What stops working without the right to a resource that `OPERATOR`, `HOME`, `EXECUTION` or `INVESTIGATOR` has."""
    return LOSSES.get((group, resource)) or LOSSES[group, ""]


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


def _ask(group: str, resources: Words, verbs: Words, subresource: str = "") -> tuple[RequiredAccess, ...]:
    return tuple(RequiredAccess(group, resource, subresource, verb) for resource in resources for verb in verbs)


NEVER: Final[tuple[RequiredAccess, ...]] = (
    *_ask("", ("secrets",), (*READ, *CHANGE)),
    # GET alone opens a stream in some versions.
    *(RequiredAccess("", resource, part, verb) for resource, part in _STREAMS for verb in ("get", "create")),
    *_ask("", ("pods",), ("update", "patch"), "ephemeralcontainers"),
    *_ask("", ("pods",), CHANGE),
    *_ask("apps", ("deployments", "statefulsets", "daemonsets", "replicasets"), CHANGE),
    *_ask("", ("serviceaccounts",), CREATE, "token"),
    *_ask("certificates.k8s.io", ("certificatesigningrequests",), ("update",), "approval"),
    *_ask("rbac.authorization.k8s.io", _ROLES, ("bind", "escalate", "create", "update", "patch")),
    *_ask("", ("users", "groups", "serviceaccounts"), ("impersonate",)),
    *_ask(_ADMISSION, _POLICIES, CHANGE),
    *_ask("apiextensions.k8s.io", ("customresourcedefinitions",), CHANGE),
    *_ask(GROUP, (_REQUESTS,), ("approve",)),
    *_ask("", ("configmaps",), ("update", "patch")),
    RequiredAccess("*", "*", "", "*"),
)
"""Rights that Inquest asks about at start and every ten minutes; with one of them it is not ready."""

# --- what people can be given ------------------------------------------------------------------------------

_READ_ALL: Final = AccessRule(GROUP, PLURALS, READ)
_READ_OPEN: Final = AccessRule(GROUP, tuple(plural for plural in PLURALS if plural != _REQUESTS), READ)
"""All but what holds the groups of the people who decided (ADR 0024)."""
_READ_CASES: Final = AccessRule(
    api_names.EVIDENCE_GROUP,
    (api_names.EVIDENCE_RESOURCE, f"{api_names.EVIDENCE_RESOURCE}/{api_names.EVIDENCE_RECORD}"),
    ("get",),
)
"""The text of evidence, as far as the reader may read what it was read from."""

PEOPLE: Final[tuple[PeopleRole, ...]] = (
    PeopleRole("inquest-viewer", (_READ_OPEN, _READ_CASES), "view"),
    PeopleRole(
        "inquest-editor", (_READ_OPEN, _READ_CASES, AccessRule(GROUP, ("signals", "investigations"), CHANGE)), "edit"
    ),
    PeopleRole(
        "inquest-approver",
        (_READ_ALL, _READ_CASES, AccessRule(GROUP, (_REQUESTS,), ("update", "patch", "approve"))),
    ),
    PeopleRole("inquest-author", (AccessRule(GROUP, _CATALOGUE_KINDS, (*READ, *CHANGE)),)),
    PeopleRole("inquest-signal-source", (AccessRule(GROUP, ("signals",), CREATE),)),
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


def render_confined(
    namespaces: Iterable[str],
    namespace: str = NAMESPACE,
    execution_namespace: str = EXECUTION_NAMESPACE,
    service_account: str = SERVICE_ACCOUNT,
) -> list[Manifest]:
    """Roles and bindings of an operator that looks after these namespaces alone; those of people are another's."""
    account = {"kind": "ServiceAccount", "name": service_account, "namespace": namespace}
    places = tuple(namespaces)
    return [
        *_cluster_wide(CONFINED_BINDING, INSTALLED, account),
        *_within(namespace, "inquest-operator", HOME, account),
        *_within(execution_namespace, "inquest-execution", EXECUTION, account),
        *(one for place in dict.fromkeys((namespace, *places)) for one in watched_in(place, account)),
        *(one for place in places for one in investigated_in(place, account)),
    ]


def watched_in(place: str, account: Manifest) -> list[Manifest]:
    """Role and binding of `WATCHED` in one namespace."""
    return [*_within(place, WATCHING, WATCHED, account)]


def investigated_in(place: str, account: Manifest) -> list[Manifest]:
    """Role and binding of what an investigation reads in one namespace."""
    return [*_within(place, "inquest-investigator", of_namespaces(INVESTIGATOR), account)]


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


def _cluster_wide(name: str, found: tuple[AccessRule, ...], account: Manifest) -> Iterator[Manifest]:
    yield _role("ClusterRole", {"name": name}, found)
    yield _binding("ClusterRoleBinding", {"name": name}, "ClusterRole", account)


def _within(namespace: str, name: str, found: tuple[AccessRule, ...], account: Manifest) -> Iterator[Manifest]:
    yield _role("Role", {"name": name, "namespace": namespace}, found)
    yield _binding("RoleBinding", {"name": name, "namespace": namespace}, "Role", account)


def _role(kind: str, metadata: Manifest, found: tuple[AccessRule, ...]) -> Manifest:
    rules = [rule.manifest() for rule in found]
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, "rules": rules}


def _binding(kind: str, metadata: Manifest, role_kind: str, account: Manifest) -> Manifest:
    role = {"apiGroup": _RBAC, "kind": role_kind, "name": metadata["name"]}
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, "roleRef": role, "subjects": [account]}
