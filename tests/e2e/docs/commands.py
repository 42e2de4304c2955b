"""Who runs each command of the documentation. A command that nobody runs needs a reason."""

from __future__ import annotations

from typing import Final

from tests.e2e.docs.pages import Step, steps

BY_HAND: Final = "by hand"
"""test_by_hand.py, on a control plane with nothing on it."""
OFFLINE: Final = "offline"
"""test_offline.py, without a cluster."""

_REGISTRY: Final = "needs a registry, which no test may reach; tests/e2e/chart builds and installs the same image"
_REAL_NODE: Final = "needs a real node: `make demo` plays it, and tests/e2e has the same fields and refusals"
_MODEL: Final = "shows what a case with a model leaves behind; tests/integration/story/test_following.py reads the same"
_CHART: Final = "installs an image on a real node: tests/e2e/chart/test_life.py does"
_TEAM: Final = "installs an image on a real node: tests/e2e/chart/test_team.py does"
_PRINTED: Final = "hack.gen.readme runs it and writes what it prints, and a check fails on a difference"
_PEOPLE: Final = "needs people, a case and a place of their own: tests/e2e/cli does the same"
_INDEX: Final = "needs a package index"
_LONG: Final = "a target of its own, minutes long"

WHO: Final = {
    "README.md": {
        "inquest get examples": _PRINTED,
        "inquest replay": "takes minutes for all: hack.gen.scenarios and tests/integration/cli play the same",
        "make demo": _REAL_NODE,
        "docker build": _REGISTRY,
    },
    "catalogue/README.md": {"IMAGE=": "the same block as in docs/how-to/install-by-hand.md"},
    "docs/how-to/answer-an-alert.md": {
        "kubectl get pods": _CHART,
        "readyz?verbose": _CHART,
        "port-forward": _CHART,
        "kubectl logs": _CHART,
        "| jq": BY_HAND,
    },
    "docs/how-to/approve-a-request.md": {
        "kubectl inquest": _PEOPLE,
        "kubectl create rolebinding oncall-approves": BY_HAND,
        "kubectl create rolebinding ops-approves": BY_HAND,
        "kubectl get rar -n": BY_HAND,
        '"decision":"Approved","decisionReason":"raise it"': BY_HAND,
        '"decision":"Rejected"': BY_HAND,
        '"approvals"': "takes two people: tests/integration/story/test_quorum.py",
    },
    "docs/how-to/change-settings.md": {"readyz?verbose": _CHART, "port-forward": _CHART},
    "docs/how-to/check-an-installation.md": {
        "inquest doctor": "shows an installation with faults: tests/e2e/operator/test_doctor.py has one",
    },
    "docs/how-to/connect-alertmanager.md": {
        "kubectl create rolebinding alertmanager": BY_HAND,
        "openssl req": BY_HAND,
        "helm upgrade": _CHART,
        "kubectl create secret generic inquest-intake-token": BY_HAND,
        "kubectl port-forward": "needs a pod behind the Service: tests/integration/story/test_intake.py sends the same",
        "curl https://inquest": "inside a pod: tests/integration/story/test_intake.py sends the same",
    },
    "docs/how-to/create-a-signal.md": {
        "kubectl create -f signal.yaml": BY_HAND,
        "kubectl patch signal": BY_HAND,
    },
    "docs/how-to/follow-a-case.md": {
        ".status.progress": _MODEL,
        "inquest follow": _MODEL,
        ".status.gaps": _MODEL,
        ".status.plan": _MODEL,
        ".status.usage": BY_HAND,
        "pip install": _INDEX,
        "export INQUEST_TELEMETRY": "names a receiver that no test has: tests/integration/adapters has one of its own",
        ".status.transcript": BY_HAND,
    },
    "docs/how-to/freeze-changes.md": {"kubectl create configmap": BY_HAND},
    "docs/how-to/install-by-hand.md": {
        "kubectl create namespace": BY_HAND,
        "kubectl apply --server-side": BY_HAND,
        "IMAGE=registry.example": BY_HAND,
        "hack.cluster load-image": _REAL_NODE,
        "kubectl create rolebinding approver": BY_HAND,
        "umask 077": BY_HAND,
        "make install": "the tests run from what it made",
        "inquest run": BY_HAND,
        "curl -s": BY_HAND,
        "kubectl get rwf,at": BY_HAND,
    },
    "docs/how-to/install-the-command.md": {
        "pip install": _INDEX,
        "--version": OFFLINE,
        "inquest completion": OFFLINE,
    },
    "docs/how-to/install-without-internet.md": {"docker build": _REGISTRY},
    "docs/how-to/install-for-one-team.md": {
        "helm install": _TEAM,
        "kubectl create clusterrolebinding": _TEAM,
        "helm upgrade": "a namespace that gets its RoleBindings back: tests/e2e/operator/test_confined.py",
    },
    "docs/how-to/install-with-helm.md": {
        "docker build": _REGISTRY,
        "port-forward": _CHART,
        "readyz?verbose": _CHART,
        "make release-image": "needs a registry; tests/hack/test_release.py has what it refuses",
        "docker create": "needs Docker; tests/e2e/chart/test_image.py reads the same list out of the image",
        "hack.images": _CHART,
        "helm install": _CHART,
        "kubectl get rwf,at": _CHART,
        "settings.triage.rates=3": "refused before anything is sent: tests/e2e/chart/test_rendering.py",
        "settings.triage.window=P1D": "refused before anything is sent: tests/e2e/chart/test_rendering.py",
        "opa test": _CHART,
        "kubectl delete sig": _CHART,
        "kubectl delete crd": _CHART,
    },
    "docs/how-to/keep-the-audit-trail.md": {
        "inquest audit verify\n": BY_HAND,
    },
    "docs/how-to/label-a-namespace.md": {"inquest.dev/managed": BY_HAND, "inquest.dev/environment": BY_HAND},
    "docs/how-to/play-scenarios-live.md": {"make scenarios": _LONG},
    "docs/how-to/read-an-investigation.md": {
        "inquest explain examples": _PRINTED,
        "kubectl inquest": _PEOPLE,
        "kubectl get --raw": "needs an APIService that leads to the operator: tests/integration/story/test_evidence.py",
        "kubectl get inv -n inquest-system            #": BY_HAND,
        ".status.conditions": BY_HAND,
        "ID=": BY_HAND,
        '"cancel":true': BY_HAND,
        "| jq": BY_HAND,
        '"feedback"': BY_HAND,
        "inquest.dev/reviewed": BY_HAND,
    },
    "docs/how-to/recover.md": {
        "kubectl create configmap": BY_HAND,
        "kubectl get validatingadmissionpolicies": BY_HAND,
        "kubectl delete job": BY_HAND,
        "kubectl delete cm": BY_HAND,
    },
    "docs/how-to/replay-a-case.md": {
        "inquest replay tests": OFFLINE,
        "inquest export": BY_HAND,
        "inquest replay ./case": BY_HAND,
    },
    "docs/how-to/serve-datastorage.md": {
        "inquest datastorage serve": "needs PostgreSQL and a certificate: tests/e2e/datastorage",
        "kubectl create secret": BY_HAND,
        "kubectl apply": BY_HAND,
        "kubectl create rolebinding": BY_HAND,
    },
    "docs/how-to/tell-people.md": {"kubectl create secret": BY_HAND},
    "docs/how-to/use-a-model.md": {
        "INQUEST_MODEL__API_KEY": "needs a key",
        "INQUEST_LIMITS__MAX_TURNS=0": OFFLINE,
        "hack.scripted_model": "serves until it is stopped: tests/integration/story/test_model.py talks to it",
    },
    "docs/how-to/write-a-policy.md": {"inquest policy test": OFFLINE},
    "docs/how-to/write-a-workflow.md": {
        "kubectl create -f -": BY_HAND,
        "kubectl apply -f account.yaml": BY_HAND,
        "kubectl get at,rwf": BY_HAND,
        "inquest lint": OFFLINE,
    },
    "docs/tutorial/first-case.md": dict.fromkeys(
        ("make", "kubectl inquest", "kubectl get", "kubectl patch", "kubectl logs", "kubectl auth", "=$("), _REAL_NODE
    ),
}
"""Page, then a part of the command: a journey, or why nobody runs it."""


def who(step: Step) -> str:
    """The journey that runs it, or why none does; empty where nobody has said."""
    parts = WHO.get(step.block.page, {})
    return next((parts[part] for part in sorted(parts, key=len, reverse=True) if part in f"{step.command}\n"), "")


def unused() -> list[str]:
    """Parts of the table above that are in no command any more."""
    found = {page: [f"{step.command}\n" for step in steps(page)] for page in WHO}
    return [
        f"{page}: {part}"
        for page, parts in WHO.items()
        for part in parts
        if not any(part in text for text in found[page])
    ]
