"""What a run says of the rights of our accounts: refused, used by nobody, from nowhere, wrongly excused; pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from hack.rights.audit import Asked, Entry
from hack.rights.grants import Right


@dataclass(frozen=True)
class Excuse:
    """Rights that a run need not show in use, and why."""

    account: str
    """A pattern, as `inquest-workflows:*`."""
    group: str
    resources: tuple[str, ...]
    """Patterns."""
    verbs: tuple[str, ...]
    why: str
    """A sentence's end: `no driver is here that …`; where `tier` is told, what it does there."""
    role: str = "*"
    tier: str = ""
    """The command or the test that does show them in use; empty: none can."""

    def is_about(self, accounts: Iterable[str]) -> bool:
        """Whether one of these accounts is meant."""
        return any(fnmatchcase(one, self.account) for one in accounts)

    def holds(self, right: Right) -> bool:
        """Whether it is about that right; never about one that holds a `*`."""
        return (
            not right.is_wider_than_any_request
            and fnmatchcase(right.account, self.account)
            and fnmatchcase(right.role, self.role)
            and right.group == self.group
            and any(fnmatchcase(right.resource, one) for one in self.resources)
            and any(fnmatchcase(right.verb, one) for one in self.verbs)
        )

    @property
    def text(self) -> str:
        """One line for people."""
        of_group = f" of {self.group}" if self.group else ""
        return f"{self.account}: {', '.join(self.verbs)} {', '.join(self.resources)}{of_group}: {self.why}"


@dataclass(frozen=True)
class Refusal:
    """A forbidden answer that has to come now and then, and why."""

    account: str
    verbs: tuple[str, ...]
    group: str
    resources: tuple[str, ...]
    says: str
    """What stands in the API server's message."""
    why: str

    def holds(self, entry: Entry) -> bool:
        """Whether it is about that answer."""
        asked = entry.asked
        return (
            fnmatchcase(asked.account, self.account)
            and asked.group == self.group
            and asked.verb in self.verbs
            and asked.resource in self.resources
            and self.says in entry.message
        )


@dataclass(frozen=True)
class Known:
    """What is expected of a run."""

    refusals: tuple[Refusal, ...] = ()
    optional: Mapping[str, str] = field(default_factory=dict)
    """API groups that a cluster may or may not serve, and whose they are."""
    unusable: tuple[Excuse, ...] = ()
    elsewhere: tuple[Excuse, ...] = ()
    """Rights that another tier shows in use."""


@dataclass(frozen=True)
class Run:
    """What is known of one run, of one cluster or of several with the same roles."""

    rights: frozenset[Right]
    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, several: Iterable[Run]) -> Run:
        """All of them as one."""
        runs = tuple(several)
        rights = frozenset(right for run in runs for right in run.rights)
        return cls(rights, tuple(entry for run in runs for entry in run.entries))


@dataclass(frozen=True)
class Verdict:
    """What has to be mended, one line for each fault, and what is told besides."""

    refused: tuple[str, ...]
    strange: tuple[str, ...]
    """Requests that were allowed by no right that was read: roles changed meanwhile, or were read wrongly."""
    unused: tuple[str, ...]
    stale: tuple[str, ...]
    """Excuses that excuse nothing, or what was used."""
    apart: tuple[str, ...]
    """Excused, with the reason; optional groups are told as one."""
    used: int
    whole: int

    def faults(self) -> list[str]:
        """Every line that fails a run which must show all."""
        told = {"refused": self.refused, "allowed by no known right": self.strange, "never used": self.unused}
        return [f"{word}: {line}" for word, lines in {**told, "stale": self.stale}.items() for line in lines]

    def lines(self) -> list[str]:
        """For people: the sums, then every fault."""
        return [f"rights: {self.used} of {self.whole} in use, {len(self.apart)} excused", *self.faults()]


def judge(run: Run, known: Known) -> Verdict:
    """The verdict; a right is in use where it alone would have allowed a request that RBAC did allow."""
    used = _used(run)
    idle = [right for right in sorted(run.rights - used) if right.group not in known.optional]
    excuses = (*known.unusable, *known.elsewhere)
    excused = {right: next((one for one in excuses if one.holds(right)), None) for right in idle}
    beside = sorted({right.group for right in run.rights - used if right.group in known.optional})
    return Verdict(
        refused=tuple(refused(run.entries, known.refusals)),
        strange=tuple(_strange(run)),
        unused=tuple(right.text for right, excuse in excused.items() if excuse is None),
        stale=tuple(_stale(run.rights, used, known)),
        apart=(
            *(f"{right.text}: {_told(excuse)}" for right, excuse in excused.items() if excuse),
            *(f"{group}: {known.optional[group]}" for group in beside),
        ),
        used=len(used),
        whole=len(run.rights),
    )


def owed(run: Run, known: Known, tier: str) -> list[str]:
    """What a tier did not show in use although others leave it to that one."""
    left = [one for one in known.elsewhere if one.tier == tier]
    return [right.text for right in sorted(run.rights - _used(run)) if any(one.holds(right) for one in left)]


def _told(excuse: Excuse) -> str:
    return f"{excuse.why} ({excuse.tier})" if excuse.tier else excuse.why


def _used(run: Run) -> frozenset[Right]:
    """A right with a `*` never is: nobody asked for all that it gives.

    Where several would have allowed a request, only the narrowest are: a wide one is in use where no other is enough.
    """
    by_kind = defaultdict(list)
    for right in run.rights:
        if not right.is_wider_than_any_request:
            by_kind[right.account, right.verb, right.resource].append(right)
    found: set[Right] = set()
    for one in {entry.asked for entry in run.entries if entry.is_allowed}:
        enough = [right for right in by_kind[one.account, one.verb, one.resource] if right.permits(one)]
        found |= {right for right in enough if right.width == min(other.width for other in enough)}
    return frozenset(found)


def refused(found: Iterable[Entry], expected: Sequence[Refusal]) -> Iterator[str]:
    """Forbidden answers that are not expected: each once, with how often and in what words."""
    met = [entry for entry in found if entry.is_refused and not any(one.holds(entry) for one in expected)]
    # Names are left out: those of events and slots are different each time.
    counted = Counter(replace(entry.asked, name="") for entry in met)
    first = {replace(entry.asked, name=""): entry for entry in reversed(met)}
    for asked, count in sorted(counted.items()):
        one = first[asked]
        yield f"{asked.account} may not {asked.text} ({count} times, first at {one.at:%H:%M:%S}): {one.message}"


def _strange(run: Run) -> Iterator[str]:
    several: dict[Asked, str] = {}
    for entry in run.entries:
        if entry.is_allowed and not entry.is_everybodys:
            several.setdefault(entry.asked, entry.by)
    for asked, by in sorted(several.items()):
        if not any(right.permits(asked) for right in run.rights):
            yield f"{asked.account}: {asked.text}: {by}"


def _stale(rights: frozenset[Right], used: frozenset[Right], known: Known) -> Iterator[str]:
    """What is said of accounts that are not there is not looked at: they belong to another way of installing."""
    accounts = {right.account for right in rights}
    for one in (found for found in (*known.unusable, *known.elsewhere) if found.is_about(accounts)):
        about = {right for right in rights if one.holds(right)}
        if not about:
            yield f"no account has such a right: {one.text}"
        elif one in known.unusable and (seen := about & used):
            yield f"in use after all: {', '.join(right.text for right in sorted(seen))}: {one.why}"
    groups = {right.group for right in rights}
    yield from (f"no account has a right in {group}" for group in known.optional if group not in groups)
