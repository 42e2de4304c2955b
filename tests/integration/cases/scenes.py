"""What a file of `cases/` says: a workload, a way in, a script, and where it ends.

about: one sentence, the row of the reference that it shows
world: broken            broken, healthy, absent, pod (a bare one): how the target fares
environment: production  of the namespace
signal: {…}              fields beside the usual ones
limits: {…}              opened by a person, with these limits
verdict: {…}             laid over what base.yaml submits in invocation 1; null takes a field away
choice: {…}              the same for invocation 2
declines: {…}            what `submit_result_no_workflow` is called with instead
steps: […]               come before those of base.yaml
second: […]              steps of the second endpoint, the first having none but `steps`
cancel: Investigating    a person stops it in this phase
ends: [Completed]        phases; those that are ends unless told
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from hack.scripted_model.script import Script

HERE: Final = Path(__file__).parent
Json = dict[str, Any]


@dataclass(frozen=True)
class Scene:
    """One file of `cases/`."""

    name: str
    about: str
    world: str = "broken"
    environment: str = "production"
    signal: Json = field(default_factory=dict)
    limits: Json | None = None
    verdict: Json = field(default_factory=dict)
    choice: Json = field(default_factory=dict)
    declines: Json | None = None
    steps: list[Json] = field(default_factory=list)
    let: Json = field(default_factory=dict)
    second: list[Json] | None = None
    unsettled: tuple[str, ...] = ()
    cancel: str = ""
    patience: float = 300.0
    """Seconds until it must have ended."""
    ends: tuple[str, ...] = ("Completed", "Failed", "Cancelled")

    @property
    def errs(self) -> bool:
        """Whether an endpoint fails: how often it is asked then depends on what other cases met there."""
        return any("error" in step for step in self.steps)

    def script(self) -> Script:
        """What the first endpoint plays."""
        own = {"steps": self.steps} if self.second is not None else self._whole(self.steps)
        return Script.model_validate(own)

    def second_script(self) -> Script:
        """What the second endpoint plays; where a case says nothing of it, the same as the first."""
        return self.script() if self.second is None else Script.model_validate(self._whole(self.second))

    def _whole(self, first: list[Json]) -> Json:
        base = yaml.safe_load((HERE / "base.yaml").read_text(encoding="utf-8"))
        for step in base["steps"]:
            self._adapt(step["name"], step["reply"]["calls"][0])
        return {"let": base["let"] | self.let, "steps": [*first, *base["steps"]]}

    def _adapt(self, name: str, call: Json) -> None:
        if name == "choice" and self.declines is not None:
            summary = call["arguments"]["root_cause_analysis"]
            call["name"] = "submit_result_no_workflow"
            call["arguments"] = overlaid({"root_cause_analysis": summary}, self.declines)
        elif name in ("verdict", "choice"):
            call["arguments"] = overlaid(call["arguments"], getattr(self, name))


def overlaid(under: Mapping[str, Any], over: Mapping[str, Any]) -> Json:
    """Objects are merged, all else is replaced; null takes a key away."""
    both = {**under, **over}
    for key in under.keys() & over.keys():
        if isinstance(under[key], Mapping) and isinstance(over[key], Mapping):
            both[key] = overlaid(under[key], over[key])
    return {key: value for key, value in both.items() if value is not None}


def scene(name: str) -> Scene:
    """Read one file; a word that has no meaning here is an error."""
    said = yaml.safe_load((HERE / "cases" / f"{name}.yaml").read_text(encoding="utf-8"))
    lists = {key: tuple(said[key]) for key in ("ends", "unsettled") if key in said}
    return Scene(name=name, **said | lists)


def names() -> list[str]:
    """Every case."""
    return sorted(path.stem for path in (HERE / "cases").glob("*.yaml"))
