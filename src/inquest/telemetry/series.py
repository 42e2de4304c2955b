"""What the metrics begin with, and what a fact of a case adds to them.

What is told of a case is worked out in `core/reporting/metrics.py` and counted here. Known label sets start at 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from prometheus_client import Counter, Histogram

from inquest.api.types import Mode, Outcome, Reason, Resolution
from inquest.core.diagnosis.detectors.registry import DETECTORS
from inquest.core.llm.conversation import BudgetSpent
from inquest.core.llm.messages import Invocation
from inquest.core.llm.recommendation import PHASE as RECOMMENDATION
from inquest.core.reporting.metrics import GUARDS, Measure
from inquest.core.reporting.transcript import UNKNOWN_TOOL, CallOutcome
from inquest.telemetry.metrics import (
    CLAIMS,
    CONFIDENCE,
    DETECTOR_FAILURES,
    ENRICHMENTS,
    GUARDRAILS,
    INJECTION_SUSPECTED,
    INVESTIGATION_SECONDS,
    INVESTIGATIONS_ACTIVE,
    MODEL_REQUESTS,
    MODEL_RETRIES,
    MODEL_SECONDS,
    MODEL_TOKENS,
    OUTCOMES,
    POLICY_DEGRADED,
    RECURRENCES,
    REMEDIATIONS,
    REPLIES,
    REPLY_DEFENCES,
    TOOL_CALLS,
    TOOL_SECONDS,
    TOOL_TRUNCATED,
    VALIDATIONS,
    Metric,
    start_at_zero,
)

STATUSES: Final = tuple(str(fate) for fate in CallOutcome if fate is not CallOutcome.RUNNING)
PHASES: Final = tuple(str(invocation) for invocation in Invocation)
ASKED_FOR: Final = (*PHASES, RECOMMENDATION)
"""What a model is called for."""
TOKENS: Final = ("prompt", "completion", "cached")
MODEL_FAULTS: Final = (
    "ContextOverflow",
    "ModelCreditExhausted",
    "ModelNotFound",
    "ModelRateLimited",
    "ModelRefused",
    "ModelRejected",
    "ModelTimeout",
    "ModelUnauthorized",
    "ModelUnavailable",
    "ModelWithoutTools",
)
"""Classes of the faults of an endpoint."""
OK: Final = "ok"
OTHER: Final = "other"
"""A word that is in no list of ours."""
ENDS: Final = (
    *Outcome,
    Reason.CANCELLED,
    Reason.TIMED_OUT,
    Reason.QUEUE_TIMEOUT,
    Reason.MODEL_UNAVAILABLE,
    Reason.API_ERROR,
    Reason.INTERNAL_ERROR,
    Reason.WORKFLOW_NOT_NEEDED,
)
"""The nine, and the ends outside them."""
RESULTS: Final = (
    *map(str, Resolution),
    *map(str, (Reason.ROLLED_BACK, Reason.EXECUTION_FAILED, Reason.TIMED_OUT, Reason.CANCELLED, Reason.INTERNAL_ERROR)),
)
"""How cases end in which a workflow was to run."""
GUARD_WORDS: Final = tuple(
    dict.fromkeys([*(str(word) for word in BudgetSpent if word), *(word for _, word in GUARDS), "Refused", "TimedOut"])
)

_KNOWN: Final[Mapping[Metric, tuple[Sequence[str], ...]]] = {
    REPLIES: (PHASES, ("clean", "coerced", "corrected", "unusable")),
    GUARDRAILS: (GUARD_WORDS,),
    DETECTOR_FAILURES: (tuple(detector.__name__ for detector in DETECTORS),),
    OUTCOMES: (tuple(map(str, ENDS)), tuple(map(str, Mode))),
    REMEDIATIONS: (RESULTS,),
    INVESTIGATIONS_ACTIVE: (tuple(map(str, Mode)),),
    INVESTIGATION_SECONDS: (tuple(map(str, ENDS)),),
}


def start_series(*, models: Iterable[str] = (), tools: Iterable[str] = ()) -> None:
    """Start all series of which the labels are known at 0, with those of the configured models and tools."""
    for metric, words in _KNOWN.items():
        start_at_zero(metric, *words)
    named, offered = tuple(models), (*tools, UNKNOWN_TOOL)
    start_at_zero(MODEL_REQUESTS, ASKED_FOR, named, (OK, *MODEL_FAULTS))
    start_at_zero(MODEL_SECONDS, ASKED_FOR, named)
    start_at_zero(MODEL_TOKENS, ASKED_FOR, named, TOKENS)
    start_at_zero(MODEL_RETRIES, ASKED_FOR, named, MODEL_FAULTS)
    start_at_zero(TOOL_CALLS, offered, STATUSES)
    start_at_zero(TOOL_SECONDS, offered)
    start_at_zero(TOOL_TRUNCATED, offered)


# --- counting ---------------------------------------------------------------------------------------------------

_BY_NAME: Final[Mapping[str, Counter | Histogram]] = {
    "reply": REPLIES,
    "reply_defence": REPLY_DEFENCES,
    "tool_calls": TOOL_CALLS,
    "guardrail": GUARDRAILS,
    "claims": CLAIMS,
    "validation_attempts": VALIDATIONS,
    "enrichment": ENRICHMENTS,
    "detector_failures": DETECTOR_FAILURES,
    "outcomes": OUTCOMES,
    "remediations": REMEDIATIONS,
    "recurrences": RECURRENCES,
    "confidence": CONFIDENCE,
    "injection_suspected": INJECTION_SUSPECTED,
    "investigation_duration": INVESTIGATION_SECONDS,
    "policy_degraded": POLICY_DEGRADED,
}


def count_measure(measure: Measure) -> None:
    """Add what a fact of a case adds."""
    metric = _BY_NAME[measure.metric]
    found = metric.labels(**measure.labels) if measure.labels else metric
    if isinstance(found, Histogram):
        found.observe(measure.value)
    else:
        found.inc(measure.value)
