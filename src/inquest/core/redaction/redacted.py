"""A value that has passed the redactor; sinks take nothing else."""

from __future__ import annotations

from typing import Final, Generic, TypeVar, final

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_SEAL: Final = object()


@final
class Redacted(Generic[T_co]):
    """A value that has passed the redactor; the only way in is `seal`, which the redactor's adapter alone calls."""

    __slots__ = ("_value",)
    _value: T_co

    def __init__(self, value: T_co, mark: object) -> None:
        if mark is not _SEAL:
            raise TypeError("only the redactor makes Redacted values")
        object.__setattr__(self, "_value", value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Redacted values do not change")

    @property
    def value(self) -> T_co:
        return self._value

    def __repr__(self) -> str:
        return "Redacted(…)"

    def carried(self, value: T) -> Redacted[T]:
        """The mark on another form of the same content (compressed, wrapped); adds nothing that was not redacted."""
        return Redacted(value, _SEAL)


def seal(value: T) -> Redacted[T]:
    """Mark a value as redacted; called by `core/redaction/redactor.py` and nowhere else (a test looks)."""
    return Redacted(value, _SEAL)
