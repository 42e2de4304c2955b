"""What is cut from a status that would be too large, the least important first."""

from __future__ import annotations

import json
from typing import Any, Final

from inquest.api import investigation as api

QUOTE_WHEN_CUT: Final = 80
SUMMARY_WHEN_CUT: Final = 120
ANALYSIS_WHEN_CUT: Final = 1000
WARNINGS_WHEN_CUT: Final = 5
WORDS_WHEN_CUT: Final = 120
FEW: Final = 8


def trim_status(status: api.InvestigationStatus, max_bytes: int) -> api.InvestigationStatus:
    """The status cut to fit, in the fixed order; the contract stays, and the names of cut fields are listed."""
    if status_size(status) <= max_bytes:
        return status
    sizes = {field: _entry_size(status, field) for field in type(status).model_fields}
    for name, cut in _CUTS:
        # `status_size`, of its entries: only what a cut changed has to be written out again.
        entries = [size for size in sizes.values() if size]
        whole = len("{}") + sum(entries) + len(", ") * max(0, len(entries) - 1)
        if whole <= max_bytes:
            return status
        shorter = cut(status)
        changed = [field for field in sizes if _differs(getattr(shorter, field), getattr(status, field))]
        if changed:
            named = tuple(dict.fromkeys((*status.truncated, name)))
            status = shorter.model_copy(update={"truncated": named})
            sizes |= {field: _entry_size(status, field) for field in (*changed, "truncated")}
    return status


def _differs(one: object, other: object) -> bool:
    # What a copy shares is not compared: a model looks at every field of itself.
    return one is not other and one != other


def _entry_size(status: api.InvestigationStatus, field: str) -> int:
    """Bytes of one field in the JSON of the status, its key included; 0 where it is left out."""
    found = status.model_dump(mode="json", by_alias=True, include={field})
    return len(json.dumps(found, ensure_ascii=False).encode()) - len("{}")


def status_size(status: api.InvestigationStatus) -> int:
    """Bytes of the status as JSON."""
    return len(json.dumps(status.to_object(), ensure_ascii=False).encode())


def _without(name: str, value: Any = ()) -> Any:
    return lambda status: status.model_copy(update={name: value})


def _last_progress(most: int) -> Any:
    return lambda status: status.model_copy(update={"progress": status.progress[-most:]})


def _short_quotes(status: api.InvestigationStatus) -> api.InvestigationStatus:
    claims = (c.model_copy(update={"quote": c.quote[:QUOTE_WHEN_CUT] if c.quote else None}) for c in status.claims)
    return status.model_copy(update={"claims": tuple(claims)})


def _short_findings(status: api.InvestigationStatus) -> api.InvestigationStatus:
    found = (
        f.model_copy(update={"summary": f.summary[:SUMMARY_WHEN_CUT] if f.summary else None}) for f in status.findings
    )
    return status.model_copy(update={"findings": tuple(found)})


def _few(name: str) -> Any:
    return lambda status: status.model_copy(update={name: getattr(status, name)[:FEW]})


def _few_causes(status: api.InvestigationStatus) -> api.InvestigationStatus:
    kept = (cause.model_copy(update={"explains": cause.explains[:1]}) for cause in status.causes[:2])
    return status.model_copy(update={"causes": tuple(kept)})


def _short_gaps(status: api.InvestigationStatus) -> api.InvestigationStatus:
    kept = (gap.model_copy(update={"why": gap.why[:WORDS_WHEN_CUT]}) for gap in status.gaps[:FEW])
    return status.model_copy(update={"gaps": tuple(kept)})


def _short_attempts(status: api.InvestigationStatus) -> api.InvestigationStatus:
    tries = status.validation_attempts
    kept = (t.model_copy(update={"errors": tuple(e[:WORDS_WHEN_CUT] for e in t.errors[-1:])}) for t in tries)
    return status.model_copy(update={"validation_attempts": tuple(kept)})


def _short_parameters(status: api.InvestigationStatus) -> api.InvestigationStatus:
    chosen = status.selected_workflow
    if chosen is None:
        return status
    kept = {name: text for name, text in chosen.parameters.items() if len(text) <= WORDS_WHEN_CUT}
    return status.model_copy(update={"selected_workflow": chosen.model_copy(update={"parameters": kept})})


def _cited_evidence(status: api.InvestigationStatus) -> api.InvestigationStatus:
    cited = {name for claim in status.claims if claim.verdict == "Supported" for name in claim.evidence}
    return status.model_copy(update={"evidence": tuple(item for item in status.evidence if item.id in cited)})


def _short_alternatives(status: api.InvestigationStatus) -> api.InvestigationStatus:
    kept = (other.model_copy(update={"rationale": None}) for other in status.alternatives)
    return status.model_copy(update={"alternatives": tuple(kept)})


def _last_warnings(status: api.InvestigationStatus) -> api.InvestigationStatus:
    return status.model_copy(update={"warnings": status.warnings[-WARNINGS_WHEN_CUT:]})


def _short_analysis(status: api.InvestigationStatus) -> api.InvestigationStatus:
    cause = status.root_cause
    if cause is None or not cause.analysis:
        return status
    return status.model_copy(
        update={"root_cause": cause.model_copy(update={"analysis": cause.analysis[:ANALYSIS_WHEN_CUT]})}
    )


_CUTS: Final = (
    ("progress", _last_progress(25)),
    ("progress", _last_progress(10)),
    ("progress", _without("progress")),
    ("plan", _without("plan")),
    ("observations", _without("observations")),
    ("claims", _short_quotes),
    ("findings", _short_findings),
    ("evidence", _cited_evidence),
    ("alternatives", _short_alternatives),
    ("warnings", _last_warnings),
    ("rootCause", _short_analysis),
    ("gaps", _short_gaps),
    ("validationAttempts", _short_attempts),
    ("selectedWorkflow", _short_parameters),
    ("causes", _few_causes),
    ("findings", _few("findings")),
    ("claims", _few("claims")),
)
"""The order of resources 3.7; from `gaps` on they are for what no other cut brings into the budget."""
