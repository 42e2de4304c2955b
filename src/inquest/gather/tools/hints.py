"""Failures in kubectl's own words, and what each of them means.

Models know these words. The hint stands after the raw error and never instead of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from inquest import errors
from inquest.errors import Declined

ARROW: Final = "→ "


@dataclass(frozen=True)
class Hint:
    """One known failure; a terminal one is not worth a second call."""

    name: str
    pattern: re.Pattern[str]
    says: str
    terminal: bool = False


def _hint(name: str, pattern: str, says: str, *, terminal: bool = False) -> Hint:
    return Hint(name, re.compile(pattern, re.IGNORECASE), says, terminal)


LACKS_RIGHT: Final = "this account lacks the right; asking again will not help"
ADMISSION: Final = "an admission rule (quota, PodSecurity) refused it; the message is itself evidence"

HINTS: Final[tuple[Hint, ...]] = (
    # Eight that the others would misread.
    _hint(
        "no_previous_container",
        r"previous terminated container",
        "no earlier instance is kept on the node, which is not proof that it never crashed; "
        "use current logs and lastState",
    ),
    _hint(
        "kubelet_unreachable",
        r":10250\b|error dialing backend",
        "the node's kubelet does not answer; look at the node",
    ),
    _hint(
        "webhook_unreachable",
        r"failed (?:calling|to call) webhook",
        "an admission webhook is down; look at its service",
    ),
    _hint(
        "admission_denied",
        r'admission webhook "[^"]+" denied the request',
        "refused by that policy; the message is evidence",
    ),
    _hint(
        "unauthorized",
        r"\(Unauthorized\)|must be logged in to the server",
        "credentials are not accepted",
        terminal=True,
    ),
    _hint(
        "container_waiting",
        r"is waiting to start: ",
        "no log exists yet; the word after the colon is the reason, use describe and events",
    ),
    _hint(
        "metrics_unavailable",
        r"metrics api not available|metrics not available yet",
        "no metrics API: unknown, not zero",
    ),
    _hint("eviction_blocked", r"violate the pod's disruption budget", "a PodDisruptionBudget holds the pod"),
    # The fifteen, in an order in which each can be reached.
    _hint(
        "namespace_not_found",
        r'\bnamespaces?\s+"[^"]+"\s+not\s+found',
        "that namespace does not exist; list namespaces",
    ),
    _hint(
        "container_not_found",
        r'\bcontainer\s+"?[\w.-]+"?\s+(?:is not valid for pod|not found in pod)|a container name must be specified'
        r"|container not found \(",
        "several containers: name one of the pod's",
    ),
    _hint(
        "pod_not_found",
        r'\bpods?\s+"[^"]+"\s+not\s+found',
        "the pod may have been rescheduled; list the namespace's pods again (`kubectl get pods -n <ns>`) "
        "for the new name",
    ),
    _hint(
        "missing_resource_type",
        r"could not find the requested resource|server doesn't have a resource type",
        "that API type is not served here; look at api-resources",
    ),
    _hint(
        "crd_not_recognized",
        r"unable to recognize|no matches for kind",
        "the CRD is not installed; the object cannot exist yet",
    ),
    _hint(
        "not_found_generic",
        r"\(NotFound\)|(?<!file )(?<!command )\bnot found\b",
        "check namespace and exact name",
    ),
    _hint(
        "immutable_field",
        r"field is immutable|cannot patch .* immutable|updates to \S+ spec for fields other than"
        r"|pod updates may not ",
        "cannot be changed in place; needs replace or recreate",
    ),
    _hint("forbidden", r"\(Forbidden\)|\bforbidden:", ADMISSION),
    _hint(
        "method_not_allowed",
        r"MethodNotAllowed|does not allow this method",
        "this type does not support that verb",
    ),
    _hint(
        "dns_lookup_failed",
        r"dial tcp[^\n]*\blookup\s+\S+|no such host",
        "the API host's name does not resolve",
        terminal=True,
    ),
    _hint(
        "apiserver_unreachable",
        r"connection refused|server \S+ was refused|no route to host|i/o timeout",
        "the API server is not reachable",
        terminal=True,
    ),
    _hint(
        "unable_to_connect",
        r"unable to connect to the server|get current server API group list",
        "connection or certificate problem, wrong context",
        terminal=True,
    ),
    _hint(
        "etcd_recovering",
        r"etcdserver:\s+(?:leader changed|request timed out|no leader)",
        "the control plane is recovering; one retry in seconds",
    ),
    _hint("yaml_parse_error", r"error converting YAML to JSON|yaml: unmarshal errors", "not valid YAML; fix the text"),
    _hint(
        "concurrent_modification",
        r"the object has been modified",
        "somebody changed it; read again, then decide",
    ),
)

_KUBECTL_LINE: Final = re.compile(
    r"^(?:Error from server|error:|Unable to connect|The connection to the server|The \S+ \"[^\"]*\" is invalid"
    r"|Operation cannot be fulfilled|E\d{4} .*memcache\.go)"
)


def hint_for(text: str | None, *, application: bool = False) -> Hint | None:
    """The first rule that fits; of an application's output only lines count that begin as kubectl begins them."""
    lines = [line for line in (text or "").splitlines() if not line.startswith(ARROW)]
    if application:
        lines = [line for line in lines if _KUBECTL_LINE.match(line)]
    return next((hint for hint in HINTS if any(hint.pattern.search(line) for line in lines)), None)


def words_of(hint: Hint, text: str) -> str:
    """The hint's sentence; a missing right and an admission rule share one word of the API."""
    return LACKS_RIGHT if hint.name == "forbidden" and re.search(r"cannot \w+ resource", text) else hint.says


def add_hint(text: str | None, *, application: bool = False) -> str:
    """The text unchanged, with a hint line behind it where one is known; twice is once. Never raises."""
    raw = text or ""
    hint = hint_for(raw, application=application)
    if hint is None or any(line.startswith(ARROW) for line in raw.splitlines()):
        return raw
    return f"{raw}\n{ARROW}{words_of(hint, raw)}"


class CallRefused(errors.InquestError):
    """A guard of ours said no before any request was made; `hint` says where else to look."""

    reason = "Refused"

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(f"[refused] {why}")
        self.hint = hint


@dataclass(frozen=True)
class ToolFailure:
    """A failed call as it is shown and counted."""

    error: str
    hint: str = ""
    terminal: bool = False
    interpreted: bool = False
    """The hint says what a known failure means; others say how to call."""


def failure_of(error: BaseException, *, seconds: float = 0.0, system: str = "") -> ToolFailure:
    """What a model is told of an exception; an unknown one gives away nothing but its class.

    `system` is what was asked where that was not Kubernetes: then nothing is said in kubectl's words.
    """
    if isinstance(error, CallRefused):
        return ToolFailure(str(error), error.hint)
    if isinstance(error, TimeoutError):
        return ToolFailure(f"[timed out after {seconds:g} s]", "ask for less, or for something else")
    if system and isinstance(error, errors.InquestError):
        return _of_system(error, system)
    text = _rendered(error)
    if hint := hint_for(text):
        return ToolFailure(text, words_of(hint, text), hint.terminal, interpreted=True)
    return ToolFailure(text, _fallback(error))


def _rendered(error: BaseException) -> str:
    match error:
        case errors.NotFound():
            return f"Error from server (NotFound): {error}"
        case errors.Forbidden():
            return f"Error from server (Forbidden): {error}"
        case errors.Misconfigured():
            return f"error: {error}"
        case errors.UnknownKind():
            return f"error: the server doesn't have a resource type: {error}"
        case errors.AmbiguousKind():
            return f"error: {error}"
        case errors.RateLimited():
            return f"Error from server (TooManyRequests): {error}"
        case errors.Unavailable():
            return f"Unable to connect to the server: {error}" if error.system != "catalogue" else str(error)
        case errors.NotRecorded():
            return f"error: {error}: that is no proof that there is none"
        case errors.Invalid():
            return str(error) if str(error).startswith("arguments.") else f"Error from server (BadRequest): {error}"
    return f"internal error: {type(error).__name__}"


def _fallback(error: BaseException) -> str:
    match error:
        case errors.AmbiguousKind():
            return f"call again with api_version, one of {', '.join(error.groups)}"
        case errors.Invalid():
            return "correct the arguments"
        case errors.RateLimited():
            return "the server is busy; look at something else first"
    return ""


# --- failures of a monitoring stack -------------------------------------------------------------------------------

STACK_HINTS: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), says)
    for pattern, says in (
        (r"parse error|syntax error|unexpected", "the query is not valid; correct it where the error points"),
        (
            r"larger than \d+ bytes|too many samples|would load too many|exceeds the limit|maximum of series"
            r"|query_length|exceeded maximum resolution|max entries|too many outstanding",
            "ask for less: name more labels, shorten the range, widen the step, aggregate with topk",
        ),
        (
            r"at least one (?:regexp or equality|non-empty) matcher",
            "name at least one label with a value that is not empty",
        ),
        (
            r"many-to-many|found duplicate series|multiple matches for labels",
            "match with on(…) and group_left, or aggregate one side first",
        ),
        (
            r"timed out|deadline exceeded|no answer within",
            "shorten the range or name more labels; it is no empty answer",
        ),
    )
)
"""What the servers say, and what helps; the first that fits."""
UNKNOWN_FIGURES: Final = "what it would show is unknown, not zero and not absent; look elsewhere"


def _of_system(error: errors.InquestError, system: str) -> ToolFailure:
    text = str(error)
    if text.startswith("arguments"):
        return ToolFailure(text, "correct the arguments")
    if isinstance(error, Declined):
        return ToolFailure(f"[refused] {text}", error.hint)
    said = next((says for pattern, says in STACK_HINTS if pattern.search(text)), "")
    match error:
        case errors.RateLimited():
            return ToolFailure(text, "it is busy; look at something else first")
        case errors.Unavailable():
            return ToolFailure(text, said or UNKNOWN_FIGURES, terminal=not said)
        case errors.Forbidden():
            return ToolFailure(text, LACKS_RIGHT, terminal=True)
        case errors.NotConfigured():
            return ToolFailure(text, UNKNOWN_FIGURES, terminal=True)
        case errors.Misconfigured() | errors.NotFound():
            return ToolFailure(text, f"{system} is not set up right; {UNKNOWN_FIGURES}", terminal=True)
        case errors.NotRecorded():
            return ToolFailure(
                f"{text}: that is no proof that there is none", "ask what was recorded, or look elsewhere"
            )
        case errors.Invalid():
            return ToolFailure(text, said or "correct the query")
    return ToolFailure(f"internal error: {type(error).__name__}", UNKNOWN_FIGURES)
