"""Parameters of a workflow: one check, one text form, and what the target itself gives."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from inquest.api.catalogue import ParameterSchema
from inquest.api.refs import TargetRef
from inquest.api.types import ParameterType
from inquest.core.evidence.evidence import CaseWarning
from inquest.core.selection.catalogue import Workflow
from inquest.core.text import abbreviate, compile_re2, make_visible

TARGET_PREFIX: Final = "TARGET_RESOURCE"


def target_parameters(target: TargetRef) -> dict[str, str]:
    """What every Job learns about its target; never taken from a model."""
    return {
        f"{TARGET_PREFIX}_KIND": target.kind,
        f"{TARGET_PREFIX}_NAME": target.name,
        f"{TARGET_PREFIX}_NAMESPACE": target.namespace or "",
        f"{TARGET_PREFIX}_API_VERSION": target.api_version or "",
    }


@dataclass(frozen=True)
class BoundParameters:
    """Parameters as text, and the names of those that the workflow does not declare."""

    parameters: Mapping[str, str]
    dropped: tuple[str, ...] = ()


def bind_parameters(
    schema: Iterable[ParameterSchema], given: Mapping[str, object], target: TargetRef
) -> BoundParameters:
    """The declared parameters with their defaults, and the target; what is not declared is dropped."""
    declared = {parameter.name: parameter for parameter in schema}
    defaults = {name: found.default for name, found in declared.items() if found.default is not None}
    values = {name: value for name, value in {**defaults, **given}.items() if name in declared and value is not None}
    dropped = sorted(name for name in given if name not in declared and not name.startswith(f"{TARGET_PREFIX}_"))
    texts = {name: parameter_text(value, declared[name].type) for name, value in values.items()}
    return BoundParameters(texts | target_parameters(target), tuple(dropped))


def parameter_text(value: object, declared: ParameterType = ParameterType.STRING) -> str:
    """A parameter in the form in which the Job gets it: booleans `true`/`false`, arrays as JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and declared is ParameterType.INTEGER and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


TARGET_PARAMETERS: Final = (
    "TARGET_RESOURCE_NAME",
    "TARGET_RESOURCE_KIND",
    "TARGET_RESOURCE_NAMESPACE",
    "TARGET_RESOURCE_API_VERSION",
)


Declaration = Mapping[str, Any]


@dataclass(frozen=True)
class CheckedParameters:
    """Parameters after all checks: completed by defaults, without the undeclared ones."""

    values: Mapping[str, Any]
    errors: tuple[str, ...] = ()
    warnings: tuple[CaseWarning, ...] = ()
    stripped: tuple[str, ...] = ()


def check_parameters(declared: Sequence[Declaration], given: Mapping[str, Any]) -> CheckedParameters:
    """All rules for all parameters, in the order of the table; null is absent."""
    names = {str(declaration.get("name")) for declaration in declared}
    present = {name: value for name, value in given.items() if value is not None}
    kept = {name: value for name, value in present.items() if name in names or name in TARGET_PARAMETERS}
    defaults = {str(d["name"]): d["default"] for d in declared if d.get("name") and d.get("default") is not None}
    values = defaults | kept
    found = [
        _check(declaration, values) for declaration in declared if declaration.get("name") not in TARGET_PARAMETERS
    ]
    return CheckedParameters(
        values=values,
        errors=tuple(text for errors, _ in found for text in errors),
        warnings=tuple(CaseWarning("ParameterUnchecked", text) for _, warnings in found for text in warnings),
        stripped=tuple(sorted(set(present) - set(kept))),
    )


Notes = tuple[list[str], list[str]]
"""Errors and warnings about one parameter."""


def _check(declaration: Declaration, values: Mapping[str, Any]) -> Notes:
    name = str(declaration.get("name"))
    if name not in values:
        return ([f"{name}: required parameter is missing"], []) if declaration.get("required") else ([], [])
    value, kind = values[name], str(declaration.get("type", ""))
    test = _TYPES.get(kind)
    if test and not test(value):
        return [f"{name}: must be {kind}, got {_shown(value)}"], []
    warnings = [] if test else [f"{name}: type {kind!r} is not known, not checked"]
    pattern_errors, pattern_warnings = _pattern(declaration, name, value)
    rules = (_hidden, _bounds, _enum)
    errors = [text for rule in rules for text in rule(declaration, name, value)]
    missing = [str(other) for other in declaration.get("dependsOn") or () if other not in values]
    depends = [f"{name}: depends on {', '.join(missing)}, which is missing"] if missing else []
    return [*errors, *pattern_errors, *depends], [*warnings, *pattern_warnings]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


_TYPES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "integer": _is_integer,
    "float": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list | tuple),
}


def _hidden(declaration: Declaration, name: str, value: Any) -> list[str]:
    """Who approves a value must see all of it."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if make_visible(text) == text:
        return []
    return [f"{name}: {make_visible(_shown(value))} holds characters that nobody sees"]


def _bounds(declaration: Declaration, name: str, value: Any) -> list[str]:
    low, high = declaration.get("minimum"), declaration.get("maximum")
    if not _is_number(value):
        return []
    below = [f"{name}: {_shown(value)} is below the minimum {low}"] if _is_number(low) and value < low else []
    above = [f"{name}: {_shown(value)} is above the maximum {high}"] if _is_number(high) and value > high else []
    return below + above


def _enum(declaration: Declaration, name: str, value: Any) -> list[str]:
    words = declaration.get("enum") or ()
    if not words or any(_same(value, word) for word in words):
        return []
    return [f"{name}: {_shown(value)} is none of {', '.join(map(str, words))}"]


def _same(value: Any, word: Any) -> bool:
    # 1 equals True in Python; in JSON it does not.
    return value == word and isinstance(value, bool) == isinstance(word, bool)


def _pattern(declaration: Declaration, name: str, value: Any) -> Notes:
    pattern = str(declaration.get("pattern") or "")
    if not pattern or not isinstance(value, str):
        return [], []
    search, fault = compile_re2(pattern)
    if fault:
        return [f"{name}: its pattern {fault}, so no value can be checked; register the workflow with another one"], []
    # Half a character reaches neither the expression nor a Job.
    whole = value.encode(errors="replace").decode()
    return ([], []) if search.search(whole) else ([f"{name}: {_shown(value)} does not match {pattern}"], [])


def _shown(value: Any) -> str:
    return abbreviate(json.dumps(value, ensure_ascii=False, default=str), 80)


def parameter_line(declaration: Declaration) -> str:
    """One line about a parameter for a prompt."""
    words = declaration.get("enum")
    parts = (
        str(declaration.get("type", "")),
        "required" if declaration.get("required") else "",
        _bound("min", declaration.get("minimum")),
        _bound("max", declaration.get("maximum")),
        f"enum=[{', '.join(map(str, words))}]" if words else "",
        f'pattern="{declaration["pattern"]}"' if declaration.get("pattern") else "",
    )
    return f"  - {declaration.get('name')} ({', '.join(part for part in parts if part)})"


def _bound(word: str, bound: Any) -> str:
    return "" if bound is None else f"{word}={bound}"


def parameter_schema(record: Workflow) -> str:
    """All parameters of a workflow for a prompt."""
    return "\n".join(map(parameter_line, record.parameters)) or "No parameter schema available."


def parameter_texts(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Values as the Job gets them: booleans `true`/`false`, 3.0 as `3`, arrays as JSON."""
    return {name: _text_of(value) for name, value in parameters.items()}


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else json.dumps(value, ensure_ascii=False)
