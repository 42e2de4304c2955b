"""Hold what comes out of the recorded cases against what came out before.

python -m hack.golden --check            exits 1 where anything is said otherwise
python -m hack.golden --check --tenth    every tenth case only
python -m hack.golden                    takes what comes out now for right

The digests are kept in the repository, one line a case; the texts that they stand for in the cache, for the difference.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from hack.cache import REPOSITORY, cache_folder
from hack.golden.model import ScriptedModel
from hack.golden.output import DIGITS, digest_of_text, output_of, text_of
from inquest.api.types import Phase
from inquest.core.case.journal import dump_fact
from inquest.core.llm.messages import Invocation
from inquest.core.reporting.transcript import NO_TOOLS, Offered
from inquest.replay.case import case_id, read_case
from inquest.replay.player import Player, case_places, default_catalogue, open_player
from inquest.settings.settings import Settings
from inquest.telemetry.logs import set_up_logging
from tests.unit.core.cases import World, call, chose, declined, one_of_each, reached, reply, submitted, view

DIGESTS: Final = Path(__file__).parent / "digests.txt"
TEXTS: Final = cache_folder() / "golden"
TENTH: Final = 10
MOST_LINES: Final = 60
MOST_CHARACTERS: Final = 300
SCENARIOS: Final = REPOSITORY / "tests" / "scenarios"
EXAMPLE: Final = REPOSITORY / "examples" / "oomkilled"


def main() -> int:
    """0 where nothing is said otherwise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--tenth", action="store_true")
    chosen = parser.parse_args()
    set_up_logging(level="error", form="text", redact=str)
    known = read_digests()
    found = asyncio.run(play_cases(TENTH if chosen.tenth else 1))
    store_texts(known, found)
    if chosen.check:
        return compare(known, found, whole=not chosen.tenth)
    DIGESTS.write_text("".join(f"{name} {digest_of_text(text)}\n" for name, text in sorted(found.items())))
    return 0


def compare(known: Mapping[str, str], found: Mapping[str, str], *, whole: bool) -> int:
    """1 where a case says anything else than before; the first difference is shown."""
    others = sorted(name for name, text in found.items() if known.get(name) != digest_of_text(text))
    gone = sorted(set(known) - set(found)) if whole else []
    if others:
        sys.stdout.writelines(difference(others[0], known.get(others[0], ""), found[others[0]]))
    for name in others:
        print(f"{name}: other than before")
    for name in gone:
        print(f"{name}: gone")
    return 1 if others or gone else 0


def read_digests() -> dict[str, str]:
    """Case → digest of what came out of it."""
    lines = DIGESTS.read_text(encoding="utf-8").splitlines() if DIGESTS.exists() else ()
    return dict(line.split(" ") for line in lines)


def store_texts(known: Mapping[str, str], found: Mapping[str, str]) -> None:
    """Keep the texts under their digests: what was said before, and what is said now."""
    TEXTS.mkdir(parents=True, exist_ok=True)
    for name, text in found.items():
        now = text_path(name, digest_of_text(text))
        for path in TEXTS.glob(text_path(name, "?" * DIGITS).name):
            if path not in (now, text_path(name, known.get(name, ""))):
                path.unlink()
        now.write_text(text, encoding="utf-8")


def text_path(name: str, digest: str) -> Path:
    return TEXTS / f"{name.replace('/', '--')}--{digest}.json"


def difference(name: str, known: str, text: str) -> Iterator[str]:
    """The first lines that differ, where the old text is still there."""
    path = text_path(name, known)
    before = path.read_text(encoding="utf-8").splitlines(True) if path.exists() else ()
    if not before:
        return iter([f"{name}: the cache has no text of {known or 'it'}; check out the commit before and make it\n"])
    lines = difflib.unified_diff(before, text.splitlines(True), f"{name} (before)", f"{name} (now)", n=2)
    return (f"{line.rstrip()[:MOST_CHARACTERS]}\n" for line in islice(lines, MOST_LINES))


async def play_cases(every: int) -> dict[str, str]:
    """Case → its text: scenarios without a model and with a scripted one, the example, the cases of the tests."""
    found = {f"tests/{name}": text_of(output) for name, output in written_cases()}
    async for name, output in recorded_cases(every):
        found[name] = text_of(output)
    return found


async def recorded_cases(every: int) -> AsyncIterator[tuple[str, Any]]:
    """Each scenario, or every so many of them, played by detectors alone and with a model."""
    async with open_player(Settings(), default_catalogue()) as player:
        for place in [*case_places([SCENARIOS])][::every]:
            name = str(case_id(place).relative_to(SCENARIOS))
            yield f"{name}/without-model", output_of((await player.play(place)).case)
            yield f"{name}/model", await with_model(player, place)
        yield "example/without-model", output_of((await player.play(EXAMPLE)).case)
        recorded = await replace(player, words=True).play(EXAMPLE)
        yield "example/recorded", output_of(recorded.case)


async def with_model(player: Player, place: Path) -> dict[str, Any]:
    """The case of a folder with the scripted model, on a clock that stands still."""
    model = ScriptedModel(read_case(place).signal.spec.target)
    endpoint = player.settings.model.model_copy(update={"name": "golden", "model": "golden"})
    settings = player.settings.model_copy(update={"model": endpoint})
    result = await replace(player, settings=settings, model=model, elapsed=lambda: 0.0).play(place)
    return output_of(result.case, tools=tools_of(model), asked=model.asked)


def tools_of(model: ScriptedModel) -> Offered:
    """The tools of each invocation, as the model was first offered them."""
    first = {asked.phase: asked.tools for asked in reversed(model.asked)}
    return {invocation: first.get(str(invocation), NO_TOOLS[invocation]) for invocation in Invocation}


def written_cases() -> Iterator[tuple[str, Any]]:
    """Every phase of a case, a conversation, and a fact of each class."""
    for phase in Phase:
        if phase not in (Phase.PENDING, Phase.FAILED, Phase.CANCELLED):
            yield f"phase-{phase}", output_of(reached(phase))
    spoken = World(settings={"model": "m-1"}, replies=iter([reply("", call("get", kind="pod")), submitted(), chose()]))
    yield "conversation", output_of(spoken.run(view()))
    refused = World(settings={"model": "m-1"}, replies=iter([submitted(), declined()]))
    yield "declined", output_of(refused.run(view()))
    yield "facts", [dump_fact(fact) for fact in one_of_each()]


if __name__ == "__main__":
    sys.exit(main())
