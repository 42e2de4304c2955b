"""What is read: answers parsed into frozen values, unknown members ignored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from inquest.adapters.datastorage.convert import REGISTRAR, digest_of_text, mapping_of
from inquest.adapters.datastorage.kubernaut import wrapped_text
from inquest.core.diagnosis.categories import category_from
from inquest.core.history.history import History, HistoryEntry
from inquest.core.history.lessons import CaseEnding, CaseEndings, EffectCheck, LessonKey
from inquest.core.selection.catalogue import Page, Workflow, WorkflowDescription, WorkflowOffer
from inquest.errors import Unavailable
from inquest.ports.datastorage import DATASTORAGE, RegisteredEntry
from inquest.telemetry.metrics import DATASTORAGE_UNREADABLE

Item = TypeVar("Item")


class _Wire(BaseModel):
    """An answer: frozen, camelCase, unknown members ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True)


class DescriptionResponse(_Wire):
    what: str = ""
    when_to_use: str = ""
    when_not_to_use: str | None = None
    preconditions: str | None = None

    @property
    def value(self) -> WorkflowDescription:
        return WorkflowDescription(self.what, self.when_to_use, self.when_not_to_use or "", self.preconditions or "")

    @property
    def words(self) -> dict[str, str]:
        return {name: text for name, text in self.model_dump(by_alias=True).items() if text}


class Pagination(_Wire):
    offset: int
    limit: int
    has_more: bool

    def page(self, items: tuple[Item, ...]) -> Page[Item]:
        return Page(items, self.offset, self.limit, self.has_more)


class Action(_Wire):
    action_type: str
    description: DescriptionResponse
    workflow_count: int


class ActionPage(_Wire):
    action_types: tuple[Action, ...]
    pagination: Pagination


class LabelsResponse(_Wire):
    component: tuple[str, ...] | str | None = None

    @property
    def components(self) -> tuple[str, ...]:
        return (self.component,) if isinstance(self.component, str) else self.component or ()


class Schema(_Wire):
    parameters: tuple[dict[str, Any], ...] | None = None


class Parameters(_Wire):
    schema_: Schema = Field(default=Schema(), alias="schema")


class Summary(_Wire):
    workflow_id: str
    workflow_name: str
    version: str
    action_type: str = ""
    description: DescriptionResponse
    parameters: Parameters | None = None

    def offer(self, action_type: str) -> WorkflowOffer:
        return WorkflowOffer(
            self.workflow_id,
            self.workflow_name,
            self.version,
            self.action_type or action_type,
            self.description.value,
            (self.parameters.schema_.parameters or ()) if self.parameters else None,
        )


class WorkflowPage(_Wire):
    workflows: tuple[Summary, ...]
    pagination: Pagination


class RecordResponse(_Wire):
    workflow_id: str
    workflow_name: str
    version: str
    action_type: str
    content: str
    content_hash: str
    status: str
    is_latest_version: bool = False
    description: DescriptionResponse
    execution_engine: str = ""
    execution_bundle: str | None = None
    execution_bundle_digest: str | None = None
    service_account_name: str | None = None
    created_by: str | None = None
    parameters: Parameters | None = None
    labels: LabelsResponse = LabelsResponse()

    @property
    def own_text(self) -> str:
        """Our own text where it was wrapped in the peer's form, else the content itself."""
        return wrapped_text(self.content) or self.content

    @property
    def is_ours(self) -> bool:
        """The peer does not keep who registered; there our own text inside tells."""
        return self.created_by == REGISTRAR or wrapped_text(self.content) is not None

    def registration(self) -> RegisteredEntry:
        return RegisteredEntry(
            id=self.workflow_id,
            content_hash=digest_of_text(self.own_text),
            status=self.status,
            name=self.workflow_name,
            version=self.version,
        )

    def record(self) -> Workflow:
        """Unavailable when the content is not what its hash says: an approval is bound to that hash."""
        if digest_of_text(self.content) != self.content_hash:
            raise Unavailable(DATASTORAGE, f"the content of workflow {self.workflow_id} does not fit its hash")
        return Workflow(
            workflow_id=self.workflow_id,
            name=self.workflow_name,
            version=self.version,
            action_type=self.action_type,
            content_hash=digest_of_text(self.own_text),
            status=self.status,
            latest=self.is_latest_version,
            description=self.description.value,
            engine=self.execution_engine,
            bundle=self.execution_bundle or "",
            bundle_digest=self.execution_bundle_digest or "",
            service_account=self.service_account_name or "",
            parameters=(self.parameters.schema_.parameters if self.parameters else None) or (),
            components=self.labels.components,
            content=mapping_of(self.own_text),
        )


class PlainList(_Wire):
    workflows: tuple[RecordResponse, ...]
    total: int


class ActionTypeAnswer(_Wire):
    status: str
    description: DescriptionResponse


class ScoreAnswer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    score: float | None = Field(default=None, ge=0, le=1)


class ChainAnswer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    is_valid: bool
    total_events: int


class EventResponse(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")
    event_id: str
    event_type: str
    event_timestamp: AwareDatetime
    event_data: dict[str, Any]


class EventPagination(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    has_more: bool


class EventPage(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    data: tuple[EventResponse, ...]
    pagination: EventPagination


class EntryResponse(_Wire):
    remediation_uid: str = Field(alias="remediationUID")
    completed_at: AwareDatetime
    started_at: AwareDatetime | None = None
    action_type: str | None = None
    workflow_type: str | None = None
    workflow_id: str | None = None
    signal_type: str | None = None
    outcome: str | None = None
    effectiveness_score: float | None = Field(default=None, ge=0, le=1)
    signal_resolved: bool | None = None
    assessment_reason: str | None = None
    hash_match: Literal["preRemediation", "postRemediation", "none"]
    pre_remediation_spec_hash: str | None = None
    post_remediation_spec_hash: str | None = None
    health_checks: dict[str, Any] | None = None
    metric_deltas: dict[str, float | None] | None = None

    def entry(self) -> HistoryEntry:
        return HistoryEntry(
            remediation_uid=self.remediation_uid,
            completed_at=self.started_at or self.completed_at,
            action_type=self.action_type or "",
            workflow_type=self.workflow_type or self.action_type or "",
            workflow_id=self.workflow_id or "",
            signal_type=self.signal_type or "",
            outcome=self.outcome or "",
            effectiveness_score=self.effectiveness_score,
            signal_resolved=self.signal_resolved,
            assessment_reason=self.assessment_reason or "",
            hash_match=self.hash_match,
            pre_spec_hash=self.pre_remediation_spec_hash or "",
            post_spec_hash=self.post_remediation_spec_hash or "",
            health_checks=self.health_checks or {},
            metric_deltas={name: value for name, value in (self.metric_deltas or {}).items() if value is not None},
        )


class TierResponse(_Wire):
    chain: tuple[EntryResponse, ...]
    degraded: bool = False


class HistoryAnswer(_Wire):
    target_resource: str
    regression_detected: bool
    scope: str | None = None
    cluster: str = ""
    tier1: TierResponse
    tier2: TierResponse

    def history(self, cluster: str = "") -> History:
        """A tier that could not be read leaves its entries out, so the whole is not to be relied on.

        A server that does not know clusters may answer with the objects of another one: as of scope `hash`, then.
        """
        seen: set[str] = set()
        older = tuple(_first_of_each(self.tier2.chain, seen))
        known = History(
            available=True,
            target=self.target_resource,
            regression_detected=self.regression_detected,
            recent=tuple(_first_of_each(self.tier1.chain, seen)),
            older=older,
            scope=(self.scope if self.cluster == cluster else None) or "hash",
        )
        return replace(known, available=False) if self.tier1.degraded or self.tier2.degraded else known


def _first_of_each(entries: Sequence[EntryResponse], seen: set[str]) -> Iterator[HistoryEntry]:
    """A repeated write on the peer is a second row of the same remediation; the first one counts."""
    for entry in entries:
        if entry.remediation_uid not in seen:
            seen.add(entry.remediation_uid)
            yield entry.entry()


def _of_the_list(word: str) -> str:
    if category_from(word) != word:
        raise ValueError("not a category")
    return word


class StoredEnding(_Wire):
    """Names and words of closed lists only: what is told to a model is not written by whoever writes history."""

    ended_at: AwareDatetime
    owner: str
    playbooks: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]{0,62}$")], ...]
    category: Annotated[str, AfterValidator(_of_the_list)]
    check: EffectCheck
    action: str = Field(default="", pattern=r"^[A-Za-z0-9]{0,63}$")
    contradicted: bool = False

    def ending(self, cluster: str) -> CaseEnding:
        return CaseEnding(
            LessonKey(tuple(sorted(set(self.playbooks))), self.category, self.owner, cluster),
            self.ended_at,
            self.check,
            self.action,
            self.contradicted,
        )


class MemoryAnswer(_Wire):
    cluster: str
    endings: tuple[dict[str, Any], ...]
    truncated: bool = False

    def known(self) -> CaseEndings:
        """One that says what none of ours says is left out and counted; the others stand."""
        found = tuple(self._readable())
        lost = len(self.endings) - len(found)
        DATASTORAGE_UNREADABLE.inc(lost)
        return CaseEndings(available=True, cluster=self.cluster, found=found, whole=not (self.truncated or lost))

    def _readable(self) -> Iterator[CaseEnding]:
        for raw in self.endings:
            try:
                yield StoredEnding.model_validate(raw).ending(self.cluster)
            except ValidationError:
                continue
