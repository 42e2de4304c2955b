"""What the API server refuses to let in: missing accounts, policies, Pod Security, webhooks that deny or do not answer.

The refusal stands, word for word, in the FailedCreate event or the ReplicaFailure condition of whoever creates the
pods.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import event_moment, is_recent
from inquest.core.diagnosis.detectors.citations import cite, cite_entry, cite_event, cited, quoted
from inquest.core.diagnosis.detectors.containers import pod_field
from inquest.core.diagnosis.detectors.events import message_of, namespaced_subject_of
from inquest.core.diagnosis.detectors.findings import one_per_field
from inquest.core.diagnosis.detectors.platform.platform_reading import platform_finding
from inquest.core.diagnosis.detectors.scheduling.quota_exceeded import QuotaRefusal, refusals
from inquest.core.diagnosis.detectors.workloads import container_specs, listed, proof_of_absence, ref_to
from inquest.core.evidence.evidence import Citation, Finding, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

WEBHOOKS: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_ACCOUNT: Final = re.compile(
    r"error looking up service account (?P<space>[\w.-]{1,253})/(?P<name>[\w.-]{1,253}): "
    r'serviceaccount "[^"]{1,253}" not found'
)
_SECURITY: Final = re.compile(r'violates PodSecurity "(?P<level>[\w:.-]{1,80})": (?P<what>.{1,2000})', re.DOTALL)
_POLICY: Final = re.compile(
    r"ValidatingAdmissionPolicy '(?P<name>[^']{1,253})' with binding '(?P<binding>[^']{1,253})' denied request: "
    r"(?P<what>.{1,1000})",
    re.DOTALL,
)
_DENIED: Final = re.compile(
    r'admission webhook "(?P<name>[^"]{1,253})" denied the request:? ?(?P<what>.{0,1000})', re.DOTALL
)
_CLASS: Final = re.compile(
    r"(?P<what>no (?P<kind>PriorityClass) with name (?P<name>[\w.-]{1,253}) was found)"
    r'|(?P<said>RuntimeClass "(?P<runtime>[^"]{1,253})" not found)'
)
_FAILED: Final = re.compile(r'failed calling webhook "(?P<name>[^"]{1,253})": (?P<why>.{1,2000})', re.DOTALL)
_BACKEND: Final = re.compile(r"https://(?P<service>[a-z0-9-]{1,63})\.(?P<space>[a-z0-9-]{1,63})\.svc[:/]")
_CONTAINER_FIELD: Final = re.compile(
    r'containers? "(?P<name>[^"]{1,63})"(?:, "[^"]{1,63}")* must (?:not )?(?:set|include [^)]{1,80} in) '
    r"(?P<field>securityContext(?:\.\w{1,40}){1,4})"
)
_HOST_FIELD: Final = re.compile(r"\b(?P<field>hostNetwork|hostPID|hostIPC)=true")
_VOLUME: Final = re.compile(r'volumes? "(?P<name>[^"]{1,63})"')
_PORT: Final = re.compile(r'container "(?P<name>[^"]{1,63})" uses hostPort')
_PATH: Final = re.compile(r"\bspec(?:\.\w{1,40}(?:\[[^\]\s]{0,40}\])?){1,10}")


def _cited(snapshot: Snapshot, refusal: QuotaRefusal, *words: str) -> tuple[Citation, ...]:
    """The refusal's words, and the owner that was read."""
    said = cite_event(snapshot, refusal.seen) if refusal.event else cited(snapshot, refusal.seen.evidence, *words)
    return (*said, *cite(snapshot, snapshot.find(refusal.owner)))


# --- service accounts ----------------------------------------------------------------------------------------------


@one_per_field
def service_account_missing(snapshot: Snapshot) -> Iterator[Finding]:
    """Pods that are not created because their service account does not exist."""
    for refusal in refusals(snapshot):
        match = _ACCOUNT.search(refusal.text)
        account = ref_to("ServiceAccount", match["name"], match["space"]) if match else None
        if match is None or account is None or snapshot.find(account) is not None:
            continue
        owner, name = refusal.owner, match["name"]
        seen = snapshot.find(owner)
        absent = proof_of_absence(snapshot, "ServiceAccount", name, match["space"])
        yield platform_finding(
            "ServiceAccountMissing",
            owner,
            pod_field(owner, "serviceAccountName"),
            name,
            f"its pods cannot be created: the service account {name} does not exist in {match['space']}",
            confidence=0.95,
            citations=(
                *_cited(snapshot, refusal, match[0]),
                *cite(snapshot, seen, quoted("serviceAccountName", name)),
                *cite_entry(snapshot, absent),
            ),
            explains=(f"{owner.display}: its pods are refused",),
            facts={"serviceAccount": name},
            refuted_by=(f"ServiceAccount {name} exists in {match['space']}",),
        )


# --- denied --------------------------------------------------------------------------------------------------------


@one_per_field
def admission_rejected(snapshot: Snapshot) -> Iterator[Finding]:
    """Pods that a policy refuses: Pod Security, a ValidatingAdmissionPolicy, a webhook."""
    for refusal in refusals(snapshot):
        named = _CLASS.search(refusal.text)
        if named is not None:
            yield _classless(snapshot, refusal, named)
        for pattern, words in _REFUSALS:
            match = pattern.search(refusal.text)
            if match is not None:
                yield _denied(snapshot, refusal, match, words(match))
                break


def _denied(snapshot: Snapshot, refusal: QuotaRefusal, match: re.Match[str], who: str) -> Finding:
    owner, what = refusal.owner, match["what"].strip()
    seen = snapshot.find(owner)
    security = "level" in match.groupdict()
    return platform_finding(
        "AdmissionRejected",
        owner,
        _field(owner, seen, what),
        what.partition(", ")[0] if security else what,
        f"its pods are refused by {who}: {what}",
        confidence=0.93,
        citations=_cited(snapshot, refusal, match[0][:200]),
        explains=(f"{owner.display}: its pods are refused",),
        facts={"policy": who},
        refuted_by=("a pod of its present template is created",),
        actions=("FixSecurityContext",) if security else (),
    )


def _classless(snapshot: Snapshot, refusal: QuotaRefusal, match: re.Match[str]) -> Finding:
    """A class that the pods ask for and that does not exist."""
    field, name = ("priorityClassName", match["name"]) if match["name"] else ("runtimeClassName", match["runtime"])
    owner = refusal.owner
    return platform_finding(
        "AdmissionRejected",
        owner,
        pod_field(owner, field),
        name,
        f"its pods are refused: {match[0]}",
        confidence=0.95,
        citations=(
            *_cited(snapshot, refusal, match[0]),
            *cite(snapshot, snapshot.find(owner), quoted(field, name)),
        ),
        explains=(f"{owner.display}: its pods are refused",),
        facts={"class": name},
        refuted_by=(f"a class of the name {name} exists",),
        actions=("PatchConfiguration",),
    )


_REFUSALS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = (
    (_SECURITY, lambda match: f"Pod Security {match['level']}"),
    (_POLICY, lambda match: f"ValidatingAdmissionPolicy {match['name']} (binding {match['binding']})"),
    (_DENIED, lambda match: f"admission webhook {match['name']}"),
)


def _field(owner: TargetRef, seen: ObservedObject | None, what: str) -> str:
    """The field that the refusal speaks of, as far as its words say it."""
    if hit := _CONTAINER_FIELD.search(what):
        return pod_field(owner, f"containers[name={hit['name']}].{hit['field']}")
    if hit := _HOST_FIELD.search(what):
        return pod_field(owner, hit["field"])
    if hit := _PORT.search(what):
        return pod_field(owner, f"containers[name={hit['name']}].ports")
    if hit := _VOLUME.search(what):
        return pod_field(owner, f"volumes[name={hit['name']}]")
    found = [each for listing, each in container_specs(seen) if listing == "containers"] if seen else []
    first = str(found[0].get("name") or "") if found else ""
    for word, rest in _WORDS:
        if word in what.lower():
            return pod_field(owner, f"containers[name={first}].{rest}" if first else rest)
    if "label" in what.lower():
        return "spec.template.metadata.labels" if owner.kind != "Pod" else "metadata.labels"
    hit = _PATH.search(what)
    if hit is None:
        return pod_field(owner, "containers")
    return hit[0] if owner.kind == "Pod" else f"spec.template.{hit[0]}"


_WORDS: Final = (
    ("resources.limits", "resources.limits"),
    ("limit", "resources.limits"),
    ("request", "resources.requests"),
    ("image", "image"),
    ("registry", "image"),
    ("probe", "livenessProbe"),
    ("securitycontext", "securityContext"),
    ("privileged", "securityContext.privileged"),
    ("root", "securityContext.runAsNonRoot"),
)


# --- webhooks that do not answer -----------------------------------------------------------------------------------


@one_per_field
def webhook_failing(snapshot: Snapshot) -> Iterator[Finding]:
    """A webhook that has to be asked and does not answer: whatever it guards cannot be written."""
    for refusal in (*refusals(snapshot), *_other_refusals(snapshot)):
        match = _FAILED.search(refusal.text)
        if match is not None:
            yield from _unanswered(snapshot, refusal, match)


def _other_refusals(snapshot: Snapshot) -> Iterator[QuotaRefusal]:
    """Recent events of another reason that name a webhook; nobody can be short of anything for them."""
    for event in snapshot.of_kind("Event"):
        at = event_moment(event.object)
        text = message_of(event)
        fresh = is_recent(at.isoformat() if at else None, snapshot.taken_at)
        ref = ref_to(*namespaced_subject_of(event))
        if fresh and ref and event.object.get("reason") != "FailedCreate" and "failed calling webhook" in text:
            yield QuotaRefusal(text, event, ref, event=True)


def _unanswered(snapshot: Snapshot, refusal: QuotaRefusal, match: re.Match[str]) -> Iterator[Finding]:
    name, why = match["name"], match["why"].strip()
    configuration, policy = _configuration(snapshot, name)
    backend = _BACKEND.search(why)
    if policy == "Ignore":
        return
    service = ref_to("Service", backend["service"], backend["space"], "v1") if backend else None
    ref = configuration.ref if configuration else service or TargetRef(kind="External", name=name)
    field = f"webhooks[name={name}].clientConfig.{'caBundle' if _is_tls(why) else 'service'}"
    place = f"{service.name}.{service.namespace}" if service else ""
    yield platform_finding(
        "WebhookFailing",
        ref,
        field if configuration else "process",
        place or why,
        f"the webhook {name} does not answer{f' (Service {place})' if place else ''}, so that nothing it guards is "
        f"created: {why}",
        confidence=0.95 if configuration else 0.85,
        citations=(
            *_cited(snapshot, refusal, match[0][:200]),
            *cite(snapshot, configuration, quoted("failurePolicy", policy) if policy else "", quoted("name", name)),
            *cite(snapshot, snapshot.find(service) if service else None),
        ),
        explains=(f"{refusal.owner.display}: its pods are refused",),
        felt_by=(refusal.owner,),
        facts={"webhook": name, "service": place, "failurePolicy": policy},
        refuted_by=(f"the Service of {name} has a ready endpoint and answers",),
        actions=("FixCertificate",) if _is_tls(why) else (),
    )


def _is_tls(why: str) -> bool:
    return "x509" in why or "certificate" in why


def _configuration(snapshot: Snapshot, name: str) -> tuple[ObservedObject | None, str]:
    """The configuration that has a webhook of this name, and its failure policy."""
    for seen in snapshot.of_kind(*WEBHOOKS):
        for webhook in listed(seen.object, "webhooks"):
            if webhook.get("name") == name:
                return seen, str(webhook.get("failurePolicy") or "Fail")
    return None, ""
