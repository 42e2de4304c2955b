"""`inquest policy test`: what a policy says of documents that lie in files, without a cluster.

The policy runs in a real OPA under the operator's own restrictions, and its answer is read as the operator reads it.
What else may ask for a person (an unavailable history, no proven claim) is no matter of policy and left out.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from cyclopts import App, Parameter
from pydantic import BaseModel, ConfigDict, ValidationError

from inquest.adapters.opa.policy import OpaPolicy
from inquest.adapters.opa.process import OpaProcess, find_binary
from inquest.api.types import RulingDecision
from inquest.cli.output import print_warning
from inquest.core.history.history import History
from inquest.core.redaction.redactor import Redactor
from inquest.core.remediation.policy import Ruling, read_ruling
from inquest.errors import Misconfigured
from inquest.settings.settings import Settings
from inquest.wiring import default_policy

policy = App(name="policy", help="Try an approval policy without a cluster.")

OK: Final = 0
FAILED: Final = 1
BAD: Final = 2
VERSION_SECONDS: Final = 10
BRING: Final = "`go install github.com/open-policy-agent/opa@latest` brings it, in a checkout of Inquest `make opa`"
SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Expected(_Strict):
    """What the policy should say; what is not given is not looked at."""

    decision: RulingDecision
    reason: str | None = None
    degraded: bool = False


class PolicyCase(_Strict):
    """One file: the document that the policy is asked about, and what it should say."""

    input: dict[str, Any]
    expect: Expected | None = None


@policy.command(name="test")
def rulings(
    *cases: Path,
    file: Annotated[Path | None, Parameter(name="--policy")] = None,
    output: Annotated[Literal["text", "json"], Parameter(alias="-o")] = "text",
    settings: Path | None = None,
) -> int:
    """Ask a policy about documents and hold its rulings against what they should be.

    Exits with 0 where all are as expected, 1 where one is not, 2 where a case or the policy cannot be used.

    Parameters
    ----------
    cases
        Files with `input` and, where something is expected, `expect`; a folder stands for all that lie in it.
    file
        The policy; that of the settings, else the default one, unless given.
    output
        `text`: a line for each case; `json`: one object a line.
    settings
        YAML file; `INQUEST_…` environment variables beat it.
    """
    return asyncio.run(_tested(found_in(cases), Settings.load(settings), file, output))


def found_in(places: Sequence[Path]) -> tuple[Path, ...]:
    """The files, those of a folder by name; Misconfigured where there is none."""
    found = tuple(path for place in places for path in _files(place))
    if not found:
        raise Misconfigured("name a case, or a folder of cases: files that end in .yaml, .yml or .json")
    return found


def _files(place: Path) -> list[Path]:
    return sorted(path for path in place.rglob("*") if path.suffix in SUFFIXES) if place.is_dir() else [place]


async def _tested(files: Sequence[Path], settings: Settings, file: Path | None, output: str) -> int:
    status = OK
    chosen = file or settings.policy.file or default_policy()
    named = settings.policy.opa_binary
    binary = find_binary(named) or (_built() if named == Settings().policy.opa_binary else None)
    if binary is None:
        raise Misconfigured(f"policy.opa_binary: there is no program {named}: {BRING}")
    print_warning(f"tested with OPA {await asyncio.to_thread(_version_of, binary)}")
    async with OpaProcess(binary, chosen) as server:
        if server.fault:
            raise Misconfigured(f"{chosen}: {server.fault}")
        asked = OpaPolicy(server, query=settings.policy.query)
        for path in files:
            status = max(status, await _told(asked, path, output))
    return status


def _version_of(binary: str) -> str:
    """What the program says of itself: the cluster's sidecar may be another one."""
    done = subprocess.run([binary, "version"], capture_output=True, text=True, timeout=VERSION_SECONDS, check=False)
    first = done.stdout.partition("\n")[0].removeprefix("Version: ").strip()
    return first or "of an unknown version"


def _built() -> str | None:
    """The OPA that `make opa` or the tests of a checkout have built for this machine, the newest of several."""
    cache = os.environ.get("INQUEST_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "inquest"
    found = [path for path in Path(cache).expanduser().glob("bin/*/opa") if os.access(path, os.X_OK)]
    return str(max(found, key=lambda path: path.stat().st_mtime)) if found else None


async def _told(asked: OpaPolicy, path: Path, output: str) -> int:
    """One case; one that cannot be read is named, and the others go on."""
    try:
        case = read_case(path)
    except Misconfigured as error:
        print(f"inquest: {error}", file=sys.stderr)
        return BAD
    answer = await asked.ask(Redactor().strings(case.input))
    found = read_ruling(
        answer, history=History(available=True), rests_on_fact=True, confidence_threshold=None, at=datetime.now(UTC)
    )
    faults = tuple(differences(case.expect, found)) if case.expect else ()
    print(_json_line(path, found, faults) if output == "json" else "\n".join(_text_lines(path, found, faults, case)))
    return FAILED if faults else OK


def read_case(path: Path) -> PolicyCase:
    """Misconfigured names the file and what is wrong with it."""
    try:
        return PolicyCase.model_validate(yaml.safe_load(path.read_bytes()))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise Misconfigured(f"{path} cannot be read: {type(error).__name__}") from error
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise Misconfigured(f"{path}: {'.'.join(map(str, first['loc'])) or 'the whole'}: {first['msg']}") from error


def differences(expected: Expected, found: Ruling) -> Iterator[str]:
    """What is not as it should be, as sentences."""
    if found.decision is not expected.decision:
        yield f"expected {expected.decision}, was {found.decision}"
    if found.degraded is not expected.degraded:
        yield f"expected {'a' if expected.degraded else 'no'} degraded ruling, was {found.fault or 'not degraded'}"
    if expected.reason is not None and found.reason != expected.reason:
        yield f"expected the reason {expected.reason!r}, was {found.reason!r}"


def _text_lines(path: Path, found: Ruling, faults: Sequence[str], case: PolicyCase) -> Iterator[str]:
    mark = "    " if case.expect is None else ("FAIL" if faults else "ok  ")
    yield f"{mark}  {path}: {found.decision}: {found.reason}"
    yield from (f"      {fault}" for fault in faults)


def _json_line(path: Path, found: Ruling, faults: Sequence[str]) -> str:
    return json.dumps(
        {
            "case": str(path),
            "decision": str(found.decision),
            "reason": found.reason,
            "riskFactors": [factor.to_object() for factor in found.risk_factors],
            "degraded": found.degraded,
            "faults": list(faults),
        },
        ensure_ascii=False,
    )
