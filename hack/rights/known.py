"""What is expected of a run: answers that have to be `forbidden`, and rights that no run, or not every, shows in use.

Each with its reason. A right that nothing uses is better taken out of `api/manifests/rights.yaml` than excused.
"""

from __future__ import annotations

from typing import Final

from hack.rights.judging import Excuse, Known, Refusal

OPERATOR: Final = "inquest-system:inquest"
WORKFLOWS: Final = "inquest-workflows:*"
SCENARIOS: Final = "make scenarios"
STORY: Final = "tests/integration/story"
CONFINED: Final = "tests/e2e/chart/test_team.py"

REFUSALS: Final[tuple[Refusal, ...]] = (
    Refusal(
        OPERATOR,
        ("create",),
        "",
        ("events",),
        "because it is being terminated",
        "what happens to a case is told in its target's namespace too, which may be going",
    ),
    Refusal(
        OPERATOR,
        ("create",),
        "inquest.dev",
        ("investigations", "remediationapprovalrequests", "workflowexecutions"),
        "cannot find RESTMapping",
        "the admission plugin that guards owners learns of a new kind half a minute after its definition came",
    ),
)

OPTIONAL: Final = {
    "gateway.networking.k8s.io": "the Gateway API's",
    "argoproj.io": "Argo CD's and Argo Rollouts'",
    "kustomize.toolkit.fluxcd.io": "Flux's",
    "helm.toolkit.fluxcd.io": "Flux's",
    "source.toolkit.fluxcd.io": "Flux's",
    "cert-manager.io": "cert-manager's",
    "acme.cert-manager.io": "cert-manager's",
    "networking.istio.io": "Istio's",
    "security.istio.io": "Istio's",
    "linkerd.io": "Linkerd's",
    "policy.linkerd.io": "Linkerd's",
    "monitoring.coreos.com": "the Prometheus operator's",
}

_RARE: Final = "read for one kind of trouble, which none of the cases has"
_NAMED: Final = "looked up where it is named as a cause, which no fault here comes to"

UNUSABLE: Final[tuple[Excuse, ...]] = (
    Excuse(OPERATOR, "storage.k8s.io", ("volumeattachments", "csi*"), ("get",), _NAMED),
    Excuse(OPERATOR, "admissionregistration.k8s.io", ("mutatingwebhookconfigurations",), ("get",), _NAMED),
    Excuse(OPERATOR, "rbac.authorization.k8s.io", ("clusterrolebindings",), ("get",), _NAMED),
    Excuse(
        OPERATOR,
        "rbac.authorization.k8s.io",
        ("clusterroles",),
        ("get", "list"),
        "read where a workload is bound to one, which no workload here is",
    ),
    Excuse(
        OPERATOR,
        "apiregistration.k8s.io",
        ("apiservices",),
        ("get", "list"),
        "read where an aggregated API is away, which none here is",
    ),
    # Of the catalogue the cases run what raises a memory limit and what rolls back, on Deployments.
    Excuse(
        WORKFLOWS,
        "apps",
        ("daemonsets", "statefulsets*", "controllerrevisions"),
        ("*",),
        "every workload is a Deployment",
    ),
    Excuse(f"{WORKFLOWS}-node", "", ("nodes", "pods", "pods/eviction"), ("*",), "the only node would be emptied"),
    Excuse(
        f"{WORKFLOWS}-volume", "", ("persistentvolumeclaims",), ("*",), "no class of storage here lets a volume grow"
    ),
    Excuse(f"{WORKFLOWS}-maximum", "autoscaling", ("*",), ("*",), "no case has an autoscaler"),
    Excuse(f"{WORKFLOWS}-cpu-limit", "apps", ("deployments",), ("*",), "no case is short of CPU"),
    Excuse(f"{WORKFLOWS}restart-deployment", "apps", ("deployments",), ("*",), "no case is mended by a restart"),
    Excuse(f"{WORKFLOWS}-replicas", "apps", ("deployments*",), ("*",), "no case is mended by more replicas"),
)

ELSEWHERE: Final[tuple[Excuse, ...]] = (
    Excuse(
        OPERATOR,
        "batch",
        ("jobs",),
        ("list", "watch"),
        "who looks after all namespaces follows Jobs by the right of an investigation",
        role="inquest-execution",
        tier=CONFINED,
    ),
    Excuse(OPERATOR, "", ("events",), ("patch",), "what is told again is counted in its event", tier=STORY),
    Excuse(OPERATOR, "storage.k8s.io", ("volumeattachments", "csi*"), ("list",), _RARE, tier=SCENARIOS),
    Excuse(OPERATOR, "admissionregistration.k8s.io", ("*webhookconfigurations",), ("list",), _RARE, tier=SCENARIOS),
    Excuse(
        OPERATOR,
        "admissionregistration.k8s.io",
        ("mutatingadmissionpolic*",),
        ("get", "list"),
        "read where admission wrote into a pod where it may run, which none of the cases has",
        tier=SCENARIOS,
    ),
    Excuse(
        OPERATOR,
        "admissionregistration.k8s.io",
        ("validatingwebhookconfigurations",),
        ("get",),
        "looked up where it is named as a cause",
        tier=SCENARIOS,
    ),
    Excuse(OPERATOR, "rbac.authorization.k8s.io", ("clusterrolebindings",), ("list",), _RARE, tier=SCENARIOS),
)

KNOWN: Final = Known(REFUSALS, OPTIONAL, UNUSABLE, ELSEWHERE)
