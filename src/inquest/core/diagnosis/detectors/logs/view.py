"""What a function that reads a log line is given, and what it answers; the words that they share."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field

from inquest.api.refs import TargetRef
from inquest.core.cluster.pods import start_words
from inquest.core.diagnosis.detectors.containers import Container, container_field
from inquest.core.diagnosis.detectors.logs.words import LogFinding
from inquest.core.diagnosis.detectors.network.callee import EXTERNAL, Callee
from inquest.core.diagnosis.detectors.platform.bindings import BoundSetting, place_of
from inquest.core.diagnosis.detectors.workloads import workload_of
from inquest.core.evidence.evidence import Citation
from inquest.core.evidence.snapshot import LogTail, Snapshot, TextSeen


@dataclass(frozen=True)
class LogView:
    """Whose log is read."""

    snapshot: Snapshot
    container: Container
    log: LogTail | TextSeen
    ref: TargetRef

    @property
    def owner(self) -> str:
        return f"{self.ref.display}: container {self.container.name}"

    def field(self, rest: str) -> str:
        return container_field(self.ref, self.container, rest)


@dataclass(frozen=True)
class LogCause:
    """What a line proves, in the words of a finding; `says` follows after what the container does."""

    category: str
    place: BoundSetting
    """What is wrong, with its citations."""
    confidence: float
    says: str
    citations: tuple[Citation, ...] = ()
    """Beside those of the place."""
    facts: dict[str, str] = dataclass_field(default_factory=dict)
    refuted_by: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    line_follows: bool = True
    """Whether the sentence ends with the line."""
    line: str = ""
    kind: str = ""


def view_of(snapshot: Snapshot, container: Container, log: LogTail | TextSeen) -> LogView:
    """What a log of this container is read with."""
    return LogView(snapshot, container, log, workload_of(snapshot, container.pod))


def command_of(container: Container) -> str:
    """Command and arguments as one line."""
    return " ".join(start_words(container.spec))


def command_place(view: LogView) -> tuple[str, str]:
    """Where the command comes from: the spec, else the image."""
    for word in ("command", "args"):
        if view.container.spec.get(word):
            return view.field(word), command_of(view.container)
    return view.field("image"), str(view.container.spec.get("image") or "")


def holder(view: LogView, called: Callee) -> BoundSetting | None:
    """The setting in which the name of the callee stands, in full or as a short name."""
    words = [called.host, *([called.name, f"{called.name}.{called.namespace}"] if called.name else [])]
    return place_of(view.snapshot, view.container, *dict.fromkeys(words))


def held(place: BoundSetting | None) -> dict[str, str]:
    """Facts of the setting that holds an address."""
    return {"setting": place.field, "holder": place.ref.display} if place else {}


def external(host: str) -> TargetRef:
    """A host outside the cluster, as an object."""
    return TargetRef(kind=EXTERNAL, name=host[:253])


def path_of(said: LogFinding) -> str:
    """The path that a line names, empty where there is none."""
    keys = ("path", "after", "node", "java", "dir", "stream", "made", "owned", "opened", "dotnet", "entry", "file")
    return next((said.named[key] for key in keys if key in said.named), "").rstrip(".:,'\")")
