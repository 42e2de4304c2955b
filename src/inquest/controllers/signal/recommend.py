"""What a person should do about an accepted Signal while its case is still open.

A look of its own, so that a slow model holds no intake up. Equal questions share one call and one answer; what failed
is not remembered, and the Signal is none the worse for it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from async_lru import alru_cache
from pydantic import ValidationError

from inquest.api.catalogue import ActionType
from inquest.api.conditions import ConditionValue, false, true
from inquest.api.investigation import Investigation
from inquest.api.signal import Recommendation, RecommendationSource, Signal
from inquest.api.types import TERMINAL_PHASES, SignalPhase
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.reading import find_readable, parse_objects
from inquest.controllers.status import publish_status
from inquest.core.llm.recommendation import (
    ActionWords,
    Advice,
    AdvicePlace,
    AdviceRequest,
    advice_request,
    fill_names,
    fit_advice,
    known_of,
    place_of,
    question_of,
    read_advice,
    topic_of,
    without_model,
)
from inquest.errors import InquestError, NotFound, Unavailable
from inquest.ports.kinds import ACTION_TYPE, SIGNAL
from inquest.telemetry.metrics import MODEL_WITHHELD

log = structlog.stdlib.get_logger(__name__)

REMEMBERED: Final = 256
"""Answers, the least recently used goes."""
SECONDS: Final = 30.0
LOOK_AGAIN: Final = timedelta(seconds=5)
"""Without a model, until the case has found something."""


@dataclass(frozen=True)
class _CachedAnswer:
    """What was said, and when: an answer from before the question came out of the cache."""

    advice: Advice
    at: datetime


@dataclass
class Recommendations:
    """Looks at one accepted Signal at a time."""

    ports: ControllerPorts
    _ask: Any = field(init=False)

    def __post_init__(self) -> None:
        self._ask = alru_cache(maxsize=REMEMBERED)(self._call)

    async def look(self, namespace: str, name: str) -> timedelta | None:
        """Write the recommendation where there is none yet; gives when to look again."""
        found = await self._read(namespace, name)
        if found is None or found.status.phase is not SignalPhase.ACCEPTED or found.status.recommendation is not None:
            return None
        inv = await self._case(found)
        if inv is not None and inv.status.phase in TERMINAL_PHASES:
            return None
        actions = await self._actions()
        withheld = self.ports.model_withheld
        if self.ports.model is None or withheld:
            if withheld:
                MODEL_WITHHELD.labels("recommendation").inc()
            return await self._by_code(found, inv, actions)
        await self._by_model(found, inv, actions)
        return None

    async def _by_model(self, found: Signal, inv: Investigation | None, actions: tuple[ActionWords, ...]) -> None:
        place, begun = place_of(found, inv), await self.ports.now()
        try:
            async with asyncio.timeout(SECONDS):
                answer: _CachedAnswer = await self._ask(await self._question(found, place, actions))
        except (InquestError, TimeoutError) as error:
            log.warning("no recommendation", signal=found.name, error=str(error) or type(error).__name__)
            await self._said(found, {}, false("ModelFailed", str(error)[:500]))
            return
        cached = answer.at < begun
        written = _written(fit_advice(answer.advice, place), place, RecommendationSource.MODEL, begun, cached=cached)
        await self._said(found, {"recommendation": written}, true("Cached" if cached else "Generated"))

    async def _by_code(
        self, found: Signal, inv: Investigation | None, actions: tuple[ActionWords, ...]
    ) -> timedelta | None:
        """What the case has found so far, in the words of the playbook that matches."""
        advice = without_model(known_of(inv, self.ports.playbooks), [action.name for action in actions])
        if advice is None:
            return LOOK_AGAIN
        place, now = place_of(found, inv), await self.ports.now()
        written = _written(fit_advice(advice, place), place, RecommendationSource.PLAYBOOK, now, cached=False)
        await self._said(found, {"recommendation": written}, true("FromPlaybook"))
        return None

    async def _said(self, found: Signal, changes: dict[str, Any], verdict: ConditionValue) -> None:
        await publish_status(self.ports, SIGNAL, found, changes, {"Recommended": verdict}, now=await self.ports.now())

    # --- the model ------------------------------------------------------------------------------------------

    async def _question(self, found: Signal, place: AdvicePlace, actions: tuple[ActionWords, ...]) -> AdviceRequest:
        """Redacted before it is normalised: the cache holds no secret either."""
        spec = found.spec
        said = " ".join(text for text in (spec.message, spec.description) if text)
        text = (await self.ports.redacted(said)).value
        name = (found.status.context.signal_name if found.status.context else None) or spec.name
        topic = topic_of(name, str(spec.severity), text, place.target, place.owner)
        return question_of(topic, actions, self.ports.settings.model.name)

    async def _call(self, question: AdviceRequest) -> _CachedAnswer:
        """One call; what is no advice is an error, and errors are not remembered."""
        if self.ports.model is None:
            raise Unavailable("model")
        reply = await self.ports.model.ask(await self.ports.redacted(advice_request(question)))
        advice = read_advice(reply, [action.name for action in question.actions])
        if advice is None:
            raise Unavailable("model", "the reply holds no advice")
        return _CachedAnswer(advice, await self.ports.now())

    # --- reads ----------------------------------------------------------------------------------------------

    async def _read(self, namespace: str, name: str) -> Signal | None:
        try:
            return Signal.from_object(await self.ports.status.read(SIGNAL, name, namespace))
        except (NotFound, ValidationError):
            return None

    async def _case(self, found: Signal) -> Investigation | None:
        ref = found.status.investigation_ref
        return await find_readable(self.ports.status, Investigation, ref.name, found.namespace) if ref else None

    async def _actions(self) -> tuple[ActionWords, ...]:
        found = parse_objects(ActionType, await self.ports.status.list(ACTION_TYPE, self.ports.namespace))
        return tuple(ActionWords(one.spec.name, one.spec.what or "") for one in found)


def _written(
    advice: Advice, place: AdvicePlace, source: RecommendationSource, now: datetime, *, cached: bool
) -> Recommendation:
    return Recommendation(
        diagnosis=fill_names(advice.diagnosis, place)[:500],
        action=fill_names(advice.action, place)[:500],
        urgency=advice.urgency,
        remediate=advice.remediate,
        prompt=fill_names(advice.prompt, place)[:1000] or None,
        source=source,
        cached=cached,
        generated_at=now,
    )
