"""`ports.DataStorage` over HTTP: the bundled service in process or elsewhere, or Kubernaut's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx2

from inquest.adapters.datastorage.convert import API, REGISTRAR
from inquest.adapters.datastorage.http_client import (
    PATIENT,
    Bearer,
    CallTimeouts,
    CircuitBreaker,
    ServiceClient,
    parse_response,
)
from inquest.adapters.datastorage.kubernaut import peer_content
from inquest.adapters.datastorage.profiles import PROFILES, ProfileName
from inquest.adapters.datastorage.requests import (
    CASE_ENDED,
    PAGE,
    Mark,
    discovery_parameters,
    event_body,
    is_stale,
    mark_of,
    page_query,
)
from inquest.adapters.datastorage.responses import (
    ActionPage,
    ActionTypeAnswer,
    EventPage,
    EventResponse,
    HistoryAnswer,
    MemoryAnswer,
    PlainList,
    RecordResponse,
    ScoreAnswer,
    WorkflowPage,
)
from inquest.adapters.datastorage.verify import VerifiedChains
from inquest.adapters.http import authorities_of
from inquest.api.refs import TargetRef
from inquest.core.history.history import UNAVAILABLE, History, keep_proven
from inquest.core.history.lessons import CaseEndings
from inquest.core.redaction.redacted import Redacted
from inquest.core.selection.catalogue import ActionOffer, CatalogueFilters, Page, Workflow, WorkflowOffer
from inquest.errors import AlreadyExists, Forbidden, InquestError, Invalid, Misconfigured, NotFound, Retryable
from inquest.ports.clock import Clock
from inquest.ports.datastorage import DATASTORAGE, AuditEvent, RegisteredEntry
from inquest.telemetry.tracing import traced

ClusterId = Callable[[], Awaitable[str]]
"""Uid of the cluster; empty where it cannot be known, Unavailable or RateLimited where it could not be read now."""


async def no_cluster() -> str:
    """No cluster is known."""
    return ""


EVENTS_IN_A_BATCH: Final = 500
AUDIT_PAGE: Final = 1000


@traced("datastorage")
class DataStorageClient:
    """`ports.DataStorage`, with effectiveness and transcript beside it.

    Errors: Unavailable, RateLimited, Forbidden, Invalid, NotFound, AlreadyExists, Misconfigured.
    """

    def __init__(
        self,
        http: httpx2.AsyncClient,
        *,
        clock: Clock,
        profile: ProfileName = "native",
        box: CallTimeouts | None = None,
        cluster: ClusterId = no_cluster,
    ) -> None:
        self._http = http
        self._line = ServiceClient(http, CircuitBreaker(clock.monotonic), box or CallTimeouts())
        self._chains = VerifiedChains(self._line, clock.monotonic)
        self._clock = clock
        self._profile = PROFILES[profile]
        self._cluster = cluster

    @classmethod
    def in_process(cls, app: Any, *, clock: Clock, cluster: ClusterId = no_cluster) -> DataStorageClient:
        """The bundled service in this process: no port, no authentication."""
        transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
        http = httpx2.AsyncClient(transport=transport, base_url="http://datastorage")
        return cls(http, clock=clock, box=PATIENT, cluster=cluster)

    @classmethod
    def remote(
        cls,
        url: str,
        *,
        clock: Clock,
        token: Callable[[], str] | None = None,
        profile: ProfileName = "native",
        authorities: Path | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        cluster: ClusterId = no_cluster,
    ) -> DataStorageClient:
        """A service at `url`; `token` is read for every request, since projected tokens rotate.

        `authorities` is a PEM file with the only ones that are believed; Misconfigured where it cannot be read.
        """
        auth = Bearer(token) if token else None
        http = httpx2.AsyncClient(
            base_url=url,
            auth=auth,
            transport=transport,
            follow_redirects=False,
            verify=authorities_of("datastorage.ca_bundle", authorities),
        )
        return cls(http, clock=clock, profile=profile, cluster=cluster)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    # --- discovery -------------------------------------------------------------------------------------

    async def actions(self, filters: CatalogueFilters, offset: int = 0, limit: int = 10) -> Page[ActionOffer]:
        """Step 1. A 404 here means a server without discovery, never "no workflow fits"."""
        try:
            answer = await self._line.read(f"{API}/workflows/actions", ActionPage, page_query(filters, offset, limit))
        except NotFound as error:
            raise Misconfigured(f"{DATASTORAGE} has no workflow discovery (its version is not supported)") from error
        offers = tuple(
            ActionOffer(item.action_type, item.description.value, item.workflow_count) for item in answer.action_types
        )
        return answer.pagination.page(offers)

    async def workflows(
        self, action_type: str, filters: CatalogueFilters, offset: int = 0, limit: int = 10
    ) -> Page[WorkflowOffer]:
        """Step 2, in the order of the service."""
        path = f"{API}/workflows/actions/{quote(action_type, safe='')}"
        answer = await self._line.read(path, WorkflowPage, page_query(filters, offset, limit))
        return answer.pagination.page(tuple(item.offer(action_type) for item in answer.workflows))

    async def workflow(self, workflow_id: str, filters: CatalogueFilters | None) -> Workflow:
        """Step 3; NotFound also for what is not Active or not the latest, which the gate lets through.

        Without filters nothing at all is sent: an empty one goes out as the value that stands for it.
        """
        path = f"{API}/workflows/{quote(workflow_id, safe='')}"
        found = await self._line.read(path, RecordResponse, discovery_parameters(filters) if filters else {})
        if found.status != "Active" or not found.is_latest_version:
            raise NotFound(f"workflow {workflow_id} is not offered any more")
        return found.record()

    # --- history ---------------------------------------------------------------------------------------

    async def history(self, target: TargetRef, spec_hash: str) -> History:
        """Both tiers; `available` is False when the service did not answer, or not in full.

        Entries whose hash chain does not hold, or could not be checked, stand apart (10.5).
        """
        asked = {
            "targetKind": target.kind,
            "targetName": target.name,
            "targetNamespace": target.namespace or "",
            "currentSpecHash": spec_hash,
            "scope": "chain",
        }
        try:
            cluster = await self._own_cluster()
            named = {"cluster": cluster} if cluster else {}
            answer = await self._line.read(f"{API}/remediation-history/context", HistoryAnswer, asked | named)
        except (Retryable, Forbidden, NotFound):
            return UNAVAILABLE
        known = answer.history(cluster)
        if not (known.available and self._profile.verifies_chains):
            return known
        return keep_proven(known, await self._chains.verdicts(entry.remediation_uid for entry in known.newest_first))

    async def _own_cluster(self) -> str:
        """Empty also where the server keeps no clusters apart: what it says of its targets holds for all of them."""
        return await self._cluster() if self._profile.keeps_endings else ""

    async def endings(self, owner: str, playbooks: Sequence[str]) -> CaseEndings:
        """How cases like a new one ended; none in a cluster that is not known."""
        if not self._profile.keeps_endings:
            return CaseEndings(available=True)
        try:
            cluster = await self._cluster()
            if not cluster:
                return CaseEndings(available=True)
            asked = {"cluster": cluster, "owner": owner, "playbooks": ",".join(playbooks)}
            answer = await self._line.read(f"{API}/outcome-memory/context", MemoryAnswer, asked)
        except InquestError as error:
            return CaseEndings(available=False, why=str(error))
        return answer.known()

    async def effectiveness(self, correlation_id: str) -> float | None:
        """The weighted score in [0, 1]; None when nothing is assessed, NotFound when nothing was ever stored."""
        path = f"{API}/effectiveness/{quote(correlation_id, safe='')}"
        return (await self._line.read(path, ScoreAnswer, {})).score

    # --- audit -----------------------------------------------------------------------------------------

    async def record(self, events: Redacted[Sequence[AuditEvent]]) -> None:
        """Store in the order given, in batches of at most 500.

        Only where a repeat could not be told from a new event is looked first at what is stored: on the peer, which
        makes ids of its own, and for events too old to be sent under their own time. What is refused keeps nothing else
        back: the others are stored, then Invalid names it (AlreadyExists where it is the only one, for its id).
        """
        now, cluster = self._clock.now(), await self._own_cluster()
        taken = [event for event in events.value if self._profile.takes(event) and _is_kept(event, cluster)]
        pending = await self._unstored(taken, now)
        refused: list[InquestError] = []
        for start in range(0, len(pending), EVENTS_IN_A_BATCH):
            bodies = [event_body(event, now, cluster) for event in pending[start : start + EVENTS_IN_A_BATCH]]
            refused += await self._appended(bodies)
        if refused and len(pending) > 1:
            raise Invalid(f"{len(refused)} of {len(pending)} records refused, the others are stored: {refused[0]}")
        if refused:
            raise refused[0]

    async def _appended(self, bodies: Sequence[Mapping[str, Any]]) -> list[InquestError]:
        """What is refused of them, found by halves: a batch is all or nothing."""
        try:
            await self._line.write("POST", f"{API}/audit/events/batch", bodies)
        except (Invalid, AlreadyExists) as error:
            if len(bodies) == 1:
                return [type(error)(f"{bodies[0]['event_type']} {bodies[0]['event_id']}: {error}")]
            half = len(bodies) // 2
            return [*await self._appended(bodies[:half]), *await self._appended(bodies[half:])]
        return []

    async def _unstored(self, events: Sequence[AuditEvent], now: datetime) -> list[AuditEvent]:
        """Each stored event answers for one that is to be sent, so equal ones are neither lost nor doubled."""
        doubtful = {event.correlation_id for event in events if self._is_doubtful(event, now)}
        stored = Counter([self._mark(found) for name in sorted(doubtful) async for found in self._events(name)])
        return [event for event in events if not (self._is_doubtful(event, now) and self._was_there(event, stored))]

    def _is_doubtful(self, event: AuditEvent, now: datetime) -> bool:
        return not self._profile.keeps_event_ids or is_stale(event, now)

    def _mark(self, found: EventResponse) -> Mark:
        if self._profile.keeps_event_ids:
            return found.event_id
        return mark_of(found.event_type, found.event_data, found.event_timestamp)

    def _was_there(self, event: AuditEvent, stored: Counter[Mark]) -> bool:
        mark = event.event_id if self._profile.keeps_event_ids else mark_of(event.event_type, event.data, event.at)
        stored[mark] -= 1
        return stored[mark] >= 0

    async def transcript(self, correlation_id: str) -> tuple[Mapping[str, Any], ...]:
        """Every event of an investigation as the service shows it, oldest first."""
        events = [event.model_dump(mode="json") async for event in self._events(correlation_id)]
        return tuple(reversed(events))

    async def _events(self, correlation_id: str) -> AsyncIterator[EventResponse]:
        offset, more = 0, True
        while more:
            page = {"correlation_id": correlation_id, "limit": str(AUDIT_PAGE), "offset": str(offset)}
            answer = await self._line.read(f"{API}/audit/events", EventPage, page)
            for event in answer.data:
                yield event
            offset, more = offset + AUDIT_PAGE, answer.pagination.has_more

    # --- catalogue -------------------------------------------------------------------------------------

    async def register_action_type(self, name: str, description: Mapping[str, str]) -> RegisteredEntry:
        """Register, enable again, or bring the description up to date."""
        wanted = {word: text for word, text in description.items() if text}
        body = {"name": name, "description": wanted, "registeredBy": REGISTRAR}
        held = parse_response(ActionTypeAnswer, await self._line.write("POST", f"{API}/action-types", body))
        if held.status == "exists" and held.description.words != wanted:
            change = {"description": wanted, "updatedBy": REGISTRAR}
            await self._line.write("PATCH", f"{API}/action-types/{quote(name, safe='')}", change)
        return RegisteredEntry(id=name, content_hash="", status="Active", name=name)

    async def register_workflow(self, content: str) -> RegisteredEntry:
        """Register the text of a RemediationWorkflow; the peer gets it in its own form, with ours inside."""
        sent = content if self._profile.takes_own_content else peer_content(content)
        body = {"content": sent, "source": "crd", "registeredBy": REGISTRAR}
        return parse_response(RecordResponse, await self._line.write("POST", f"{API}/workflows", body)).registration()

    async def registered(self) -> tuple[RegisteredEntry, ...]:
        """What Inquest registered and is Active or Disabled; nothing that somebody else put there."""
        return tuple(
            [record.registration() async for record in self._records() if record.status in ("Active", "Disabled")]
        )

    async def _records(self) -> AsyncIterator[RecordResponse]:
        offset, total = 0, 1
        while offset < total:
            asked = {"limit": str(PAGE), "offset": str(offset)}
            answer = await self._line.read(f"{API}/workflows", PlainList, asked)
            for record in answer.workflows:
                if record.is_ours:
                    yield record
            offset, total = offset + PAGE, answer.total

    async def disable_workflow(self, workflow_id: str, reason: str) -> None:
        """Disable; already disabled is success."""
        await self._change(workflow_id, "disable", reason)

    async def _change(self, workflow_id: str, verb: str, reason: str) -> None:
        path = f"{API}/workflows/{quote(workflow_id, safe='')}/{verb}"
        await self._line.write("PATCH", path, {"reason": reason, "updatedBy": REGISTRAR})


def _is_kept(event: AuditEvent, cluster: str) -> bool:
    """An ending that belongs to no known cluster could be found by none."""
    return bool(cluster) or event.event_type != CASE_ENDED
