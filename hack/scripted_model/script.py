"""What a script holds, and which of its steps answers a request; pure.

    model: oom                         # the answer's model is `scripted/oom`
    let:                               # values copied out of the conversation, asked for as {{ pod }}
      pod: {find: 'name: (api-\\S+)', from: kubectl_get, default: api-0}
    steps:                             # the first that fits answers
      - when: {turn: 1, offers: [submit_result], contains: OOMKilled}
        times: 1                       # at most so often; unlimited unless told
        reply: {text: …, calls: [{name: …, arguments: {…}}], finish_reason: …, usage: {…}}
      - error: {status: 429, retry_after: 2, code: rate_limit_exceeded}
      - garbage: not JSON at all       # also: `cut: true`, `empty: true`; `delay: 0.5` goes with any of them
      - reply: {text: …, reasoning: …} # `pause: 1` halts a stream in its middle, `whole: true` answers one in one piece

`from` is `all` (default), `last` (what came after the last reply), a role, or the name of a tool, whose results are
then searched. `find` is a regular expression; its first group, else the whole match, is the value. A value may pass
a filter: `{{ limit | double }}`. A list item or call with a key `if` is left out when that text is empty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hack import HackError

Request = Mapping[str, Any]


ADVICE: Final = """\
DIAGNOSIS: The script has not looked at it.
ACTION: Wait for the investigation.
URGENCY: soon
---
REMEDIATE: no
"""


class ScriptError(HackError):
    """The script does not say what it should."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Lookup(_Part):
    """A value of the conversation."""

    find: str
    source: str = Field(default="all", alias="from")
    default: str = ""
    pick: Literal["first", "last"] = "first"


class When(_Part):
    """All that is said must hold."""

    turn: int | None = None
    """Replies before this one, plus one."""
    offers: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    forced: bool | None = None
    sends: tuple[str, ...] = ()
    """Fields of the request's body."""
    contains: str = ""
    """Regular expression, searched in what came after the last reply."""


class Call(_Part):
    """One tool call; `arguments` as text is sent as it is, whatever it holds."""

    name: str
    arguments: dict[str, Any] | str = {}
    id: str = ""
    condition: str | None = Field(default=None, alias="if")


class Figures(_Part):
    """Tokens to report."""

    prompt: int
    cached: int = 0
    completion: int
    reasoning: int = 0


class Reply(_Part):
    """What the model would have said."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    finish_reason: str = ""
    usage: Figures | Literal["none"] | None = None
    refusal: str = ""
    reasoning: str = ""
    """Sent beside the answer, in the field that `reasoning_field` names."""
    reasoning_field: Literal["reasoning", "reasoning_content"] = "reasoning_content"


class Failure(_Part):
    """An answer with an error status."""

    status: int
    retry_after: float | str | None = None
    """Seconds, or a date as text."""
    retry_after_ms: float | None = None
    message: str = "scripted failure"
    code: str = ""
    body: Any = None
    """The whole body, for endpoints that word errors in their own way."""
    late: bool = False
    """Under status 200: in the place of the answer, or as an event of the stream."""


class Step(_Part):
    """One answer and when it is given."""

    name: str = ""
    when: When = When()
    times: int | None = None
    delay: float = 0.0
    reply: Reply | None = None
    error: Failure | None = None
    garbage: str | None = None
    cut: bool = False
    empty: bool = False
    pause: float = 0.0
    whole: bool = False
    crowd: int = 0
    """Answer only once so many requests have been in work at the same time."""


class Script(_Part):
    """A whole script."""

    model: str = "script"
    let: dict[str, Lookup] = {}
    steps: tuple[Step, ...]
    advice: str = ADVICE
    """Answer to a question for a recommendation; it uses no step up and stands apart from the requests."""


def load(path: str | Path) -> Script:
    """Read a script file."""
    return parse(Path(path).read_text(encoding="utf-8"))


def parse(text: str) -> Script:
    """Read a script; what it must not hold is named."""
    try:
        return Script.model_validate(yaml.safe_load(text))
    except (ValidationError, yaml.YAMLError) as error:
        raise ScriptError(f"script: {error}") from error


def choose(script: Script, request: Request, used: Mapping[int, int]) -> int | None:
    """Index of the first step that fits and is not used up."""
    for index, step in enumerate(script.steps):
        if (step.times is None or used.get(index, 0) < step.times) and _fits(step.when, request):
            return index
    return None


def values_of(script: Script, request: Request) -> dict[str, str]:
    """Every value of `let`, as this conversation gives it."""
    return {name: _look_up(lookup, request) for name, lookup in script.let.items()}


def filled(data: Any, values: Mapping[str, str]) -> Any:
    """Templates replaced in every string; items whose `if` is empty left out."""
    if isinstance(data, str):
        return TEMPLATE.sub(lambda hit: _value(hit, values), data)
    if isinstance(data, Mapping):
        return {key: filled(value, values) for key, value in data.items() if key != "if"}
    if isinstance(data, list | tuple):
        return [filled(item, values) for item in data if _wanted(item, values)]
    return data


TEMPLATE: Final = re.compile(r"\{\{\s*(\w+)\s*(?:\|\s*(\w+)\s*)?\}\}")


def _value(hit: re.Match[str], values: Mapping[str, str]) -> str:
    if hit.group(1) not in values:
        raise ScriptError(f"script: no value named {hit.group(1)}")
    return FILTERS[hit.group(2) or ""](values[hit.group(1)])


def _wanted(item: Any, values: Mapping[str, str]) -> bool:
    condition = item.get("if") if isinstance(item, Mapping) else None
    return condition is None or bool(filled(str(condition), values).strip())


def _double(quantity: str) -> str:
    """`64Mi` becomes `128Mi`."""
    number = re.match(r"\d+", quantity)
    return f"{2 * int(number.group())}{quantity[number.end() :]}" if number else quantity


FILTERS: Final[Mapping[str, Callable[[str], str]]] = {"": str, "double": _double, "lower": str.lower}


def turn_of(request: Request) -> int:
    """Number of the reply that is asked for."""
    return 1 + [message.get("role") for message in request["messages"]].count("assistant")


def _fits(when: When, request: Request) -> bool:
    offered = {tool["function"]["name"] for tool in request.get("tools") or ()}
    forced = request.get("tool_choice") not in (None, "auto")
    return (
        when.turn in (None, turn_of(request))
        and offered.issuperset(when.offers)
        and offered.isdisjoint(when.lacks)
        and when.forced in (None, forced)
        and request.keys() >= set(when.sends)
        and bool(re.search(when.contains, _text("last", request), re.MULTILINE))
    )


def _look_up(lookup: Lookup, request: Request) -> str:
    hits = list(re.finditer(lookup.find, _text(lookup.source, request), re.MULTILINE))
    if not hits:
        return lookup.default
    hit = hits[0 if lookup.pick == "first" else -1]
    return hit.group(1) if hit.re.groups else hit.group()


def _text(source: str, request: Request) -> str:
    messages = list(request["messages"])
    if source == "last":
        said = [index for index, message in enumerate(messages) if message.get("role") == "assistant"]
        messages = messages[said[-1] + 1 :] if said else messages
    elif source in ("system", "user", "assistant", "tool"):
        messages = [message for message in messages if message.get("role") == source]
    elif source != "all":
        ids = {call["id"] for m in messages for call in m.get("tool_calls") or () if call["function"]["name"] == source}
        messages = [message for message in messages if message.get("tool_call_id") in ids]
    return "\n".join(_content(message) for message in messages)


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
