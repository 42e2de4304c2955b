"""What an exit status of `inquest` says: one table, for the commands, for scripts and for the reference page."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from inquest import errors
from inquest.errors import InquestError


class Exit(IntEnum):
    """Stable: a number keeps its meaning."""

    OK = 0
    NO = 1
    MISUSED = 2
    NOT_FOUND = 3
    FORBIDDEN = 4
    UNAVAILABLE = 5
    CONFLICT = 6
    NEEDS_PERSON = 7
    FAILED = 8
    CANCELLED = 9
    TIMED_OUT = 10
    NOT_TAKEN_UP = 11
    INTERRUPTED = 130


MEANINGS: Final[Mapping[Exit, str]] = {
    Exit.OK: "done; a case that was waited for ended as Completed and asks nobody to look",
    Exit.NO: "what was checked does not hold: an expectation, a hash chain, an object, an installation",
    Exit.MISUSED: "a wrong argument or setting, or the API server refuses the object: the text names field and rule",
    Exit.NOT_FOUND: "there is no such object, or no kind of this name",
    Exit.FORBIDDEN: "you may not: the text names verb and object",
    Exit.UNAVAILABLE: "the cluster, or a service, does not answer or asks to come back later",
    Exit.CONFLICT: "too late: it was decided, it has ended, or somebody wrote at the same time",
    Exit.NEEDS_PERSON: "a case that was waited for ended, and a person has to look (`status.needsHumanReview`)",
    Exit.FAILED: "a case that was waited for ended as Failed",
    Exit.CANCELLED: "a case that was waited for was cancelled",
    Exit.TIMED_OUT: "a case that was waited for has not ended within `--timeout`",
    Exit.NOT_TAKEN_UP: "your decision is on record, and the operator has not acted on it: the text says why",
    Exit.INTERRUPTED: "stopped by Ctrl-C",
}

_BY_ERROR: Final[Mapping[type[InquestError], Exit]] = {
    errors.NotFound: Exit.NOT_FOUND,
    errors.UnknownKind: Exit.NOT_FOUND,
    errors.Forbidden: Exit.FORBIDDEN,
    errors.AlreadyExists: Exit.CONFLICT,
    errors.Conflict: Exit.CONFLICT,
    errors.Retryable: Exit.UNAVAILABLE,
}


def exit_of(error: InquestError) -> Exit:
    """By the nearest class of the table; whatever is not in it is a matter of arguments, settings or objects."""
    return next((_BY_ERROR[kind] for kind in type(error).__mro__ if kind in _BY_ERROR), Exit.MISUSED)
