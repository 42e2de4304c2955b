"""What is kept of a case: as the operator shows it through the API server, else read where it lies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from inquest.adapters.kubernetes.evidence import withheld_of
from inquest.api.names import API_SERVICE
from inquest.cli.options import Session
from inquest.cli.output import print_warning
from inquest.core.case.case import Case
from inquest.core.evidence.evidence import Evidence, EvidenceStatus
from inquest.core.reporting.archive import case_from_records
from inquest.errors import Forbidden, InquestError, Misconfigured, Unavailable, UnknownKind
from inquest.ports.kubernetes import Json
from inquest.replay.player import NotHere, stored_case
from inquest.settings.settings import Settings


@dataclass(frozen=True)
class DisclosedEvidence:
    """The pieces of evidence that this person may see, and by the others why not."""

    pieces: tuple[Evidence, ...]
    withheld: Mapping[str, str] = field(default_factory=dict)


async def read_evidence(
    at: Session, settings: Settings, uid: str, name: str, number: str, *, direct: bool
) -> DisclosedEvidence:
    """All pieces, or one with its text; `direct`: past the API server, where the settings say that they lie."""
    if not direct:
        try:
            with _explained():
                files = at.kube.case_files
                answer = await (files.piece(at.namespace, name, number) if number else files.index(at.namespace, name))
                return DisclosedEvidence(tuple(map(_piece, answer.get("evidence") or ())), withheld_of(answer))
        except UnknownKind:
            pass
    try:
        return DisclosedEvidence((await stored_case(at.kube, settings, uid)).evidence)
    except (NotHere, Forbidden) as error:
        raise out_of_reach(error, direct=direct) from error


async def read_record(at: Session, name: str) -> tuple[Case, Mapping[str, str]]:
    """A whole case as this person may have it, and what is withheld from it; UnknownKind where nobody serves it."""
    with _explained():
        records, withheld = await at.kube.case_files.record(at.namespace, name)
    return case_from_records(records), withheld


def tell_withheld(withheld: Mapping[str, str]) -> None:
    """One line for each reason."""
    reasons: dict[str, list[str]] = {}
    for name, why in withheld.items():
        reasons.setdefault(why, []).append(name)
    for why, names in reasons.items():
        print_warning(f"withheld: {', '.join(names)}: {why}")


@contextmanager
def _explained() -> Iterator[None]:
    """An aggregated API is away when the operator is, whatever else the API server does."""
    try:
        yield
    except Unavailable as error:
        raise Unavailable(
            error.system, f"{error}; kubectl get apiservice {API_SERVICE} says whether it is the operator"
        ) from error


def out_of_reach(error: NotHere | Forbidden, *, direct: bool) -> InquestError:
    """Neither way leads to the records; a refusal where they lie is told as it is where they were asked for there."""
    if direct and isinstance(error, Forbidden):
        return error
    if direct:
        return Misconfigured(f"{error}; without --settings they come through the API server")
    return Misconfigured(
        f"this cluster has no APIService {API_SERVICE}, by which cases are read: switch evidence.enabled on in the "
        "chart's values, or name the service with the records by --settings"
    )


def _piece(told: Json) -> Evidence:
    at = datetime.fromisoformat(told["observedAt"])
    status, text = EvidenceStatus(told["status"]), told.get("text", "")
    return Evidence(told["id"], told["tool"], told["arguments"], text, told["digest"], status, at)


def settings_of(file: Path | None, operator_namespace: str) -> Settings:
    """The settings that say where the records are; a namespace that is given beats theirs."""
    chosen = Settings.load(file)
    if not operator_namespace:
        return chosen
    kubernetes = chosen.kubernetes.model_copy(update={"namespace": operator_namespace})
    return chosen.model_copy(update={"kubernetes": kubernetes})


def in_pod(words: str, namespace: str) -> str:
    """The command line that does the same in the operator's pod, as the chart has it."""
    program = "/opt/inquest/bin/python -m inquest.cli.main"
    pod = f"kubectl exec -n {namespace} deploy/inquest -c operator"
    return f"{pod} -- {program} {words} --settings /etc/inquest/settings.yaml"
