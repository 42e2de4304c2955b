"""What can go wrong, sorted by who acts next.

    InquestError
    ├── Retryable            the dispatcher tries again
    │   ├── Unavailable      an outside system did not answer (time-out, refused, 5xx)
    │   ├── RateLimited      it answered "later"
    │   ├── Unsettled        the catalogue has objects that are not registered yet
    │   └── Conflict         somebody wrote first: read again, then write again
    ├── Answer               nobody: this is how the world is, and it is data
    │   ├── NotFound
    │   │   └── NotKept      a log that was there and that nobody has any more
    │   ├── AlreadyExists
    │   ├── UnknownKind      no API group serves this word
    │   └── AmbiguousKind    several API groups do
    ├── NeedsPerson          a person changes a right, a setting, an object
    │   ├── Forbidden
    │   ├── Invalid          names the field and the rule
    │   ├── Misconfigured
    │   ├── Tampered         a journal that does not hold
    │   │   └── OlderJournal     one that an earlier version wrote
    │   └── ModelRefused     the model's endpoint refuses for good
    │       └── ContextOverflow   because the conversation is too long for it
    ├── NotRecorded          nobody: a recorded case does not say
    ├── Fenced               nobody here: another replica owns the case
    └── InvalidTransition    a developer: a fact arrived in a phase that has no place for it

Foreign errors are converted to these at the border of each adapter, with the cause kept.
"""

from __future__ import annotations


class InquestError(Exception):
    """Root of the tree; `reason` is the CamelCase word that conditions, events and logs carry."""

    reason = "InternalError"


class Retryable(InquestError):
    """The same call may succeed later."""

    reason = "TransientError"


class Unavailable(Retryable):
    """An outside system did not answer in time, or answered that it cannot."""

    def __init__(self, system: str, detail: str = "") -> None:
        super().__init__(f"{system} is unavailable: {detail}" if detail else f"{system} is unavailable")
        self.system = system


class RateLimited(Retryable):
    """Asked to come back later; `retry_after` is in seconds, None when not said."""

    def __init__(self, system: str, retry_after: float | None = None) -> None:
        super().__init__(f"{system} is limiting the rate" + (f", retry after {retry_after:g} s" if retry_after else ""))
        self.system = system
        self.retry_after = retry_after


class Unsettled(Retryable):
    """Something of the catalogue is not registered yet, so that nobody knows whether a workflow fits."""

    reason = "CatalogueUnsettled"

    def __init__(self, waits_for: str) -> None:
        super().__init__(f"waits for {waits_for} to be registered")
        self.waits_for = waits_for


class Conflict(Retryable):
    """A compare-and-swap lost."""

    reason = "Conflict"


class DefiniteAnswer(InquestError):
    """Not a failure: the outside system said how things are."""


class NotFound(DefiniteAnswer):
    """The object is not there."""

    reason = "NotFound"


class NotKept(NotFound):
    """The container runtime has taken the log of a container away."""


class AlreadyExists(DefiniteAnswer):
    """An object of this name is there already."""

    reason = "AlreadyExists"


class UnknownKind(DefiniteAnswer):
    """No API group of the cluster serves this kind."""

    reason = "UnknownKind"


class AmbiguousKind(DefiniteAnswer):
    """Several API groups serve this kind and none was named; `groups` lists `group/version` texts."""

    reason = "AmbiguousKind"

    def __init__(self, kind: str, groups: tuple[str, ...]) -> None:
        super().__init__(f"{kind} is served by {', '.join(groups)}: name one as api_version")
        self.groups = groups


class NeedsPerson(InquestError):
    """Trying again changes nothing until somebody changes something."""


class Forbidden(NeedsPerson):
    """The API server refused; the text names verb and resource."""

    reason = "Forbidden"


class NeverRead(Forbidden):
    """A kind that Inquest reads for nobody: no request was made."""


class Invalid(NeedsPerson):
    """Bad input; the text names the field and the rule."""

    reason = "Invalid"


class Misconfigured(NeedsPerson):
    """A setting or an installation fault."""

    reason = "Misconfigured"


class NotConfigured(Misconfigured):
    """A source that no setting names: what it would show is unknown."""

    reason = "NotConfigured"


class Tampered(NeedsPerson):
    """A journal whose chain, numbers, owner or epochs do not hold."""

    reason = "JournalTampered"


class OlderJournal(Tampered):
    """A journal that an earlier version wrote and this one does not read; nothing was done to it."""

    reason = "JournalOfEarlierVersion"


class ModelRefused(NeedsPerson):
    """A permanent answer of the model's endpoint."""

    reason = "PermanentError"


class ContextOverflow(ModelRefused):
    """The conversation is longer than the model can read; `window` is what that endpoint can, in tokens.

    Permanent for the request as it is: squeezed, it may be asked once more.
    """

    def __init__(self, text: str, window: int) -> None:
        super().__init__(text)
        self.window = window


class NotRecorded(InquestError):
    """A recorded case does not hold the answer to this read: that is no proof of anything."""

    reason = "NotRecorded"


class Fenced(InquestError):
    """Another replica owns this case, or this one can no longer prove that it lives."""

    reason = "Fenced"


class InvalidTransition(InquestError):
    """A fact that has no row in `TRANSITIONS` for this phase."""

    reason = "OutOfTurn"

    def __init__(self, fact: object, phase: object) -> None:
        super().__init__(f"{type(fact).__name__} does not belong to phase {phase}")


class Declined(Invalid):
    """A query that is not sent; `hint` says what would be."""

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(why)
        self.hint = hint
