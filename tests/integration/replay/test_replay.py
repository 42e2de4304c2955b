"""`inquest replay` from folders to exit status: the product's own steps on recorded cases (cases, section 4)."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
import yaml

from hack.scripted_model.script import Step, load
from hack.scripted_model.server import serve
from inquest.cli.app import app
from inquest.core.redaction.redactor import Redactor
from inquest.errors import Misconfigured
from inquest.replay.case import BACKGROUNDS
from inquest.replay.clock import RecordedClock
from inquest.replay.cluster import RecordedCluster
from inquest.replay.one_file import case_text
from inquest.replay.target_reader import RecordedTargetReader
from inquest.replay.yaml_pages import Loader
from inquest.telemetry.logs import set_up_logging
from tests.integration.replay.support import CASES, case, copied

SCENARIOS = Path(__file__).parents[2] / "scenarios"
OOM = Path(__file__).parents[3] / "hack/scripted_model/scripts/oom.yaml"


@pytest.fixture(autouse=True)
def log_of_the_command() -> Iterator[None]:
    """As its entry point sets it up: what is logged never stands in what is printed."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    set_up_logging(level="warning", form="text", redact=str)
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = app(["replay", *map(str, arguments)], result_action="return_value")
    said = capsys.readouterr()
    return status, said.out, said.err


def lines(text: str) -> dict[str, dict[str, Any]]:
    return {one["case"]: one for one in map(json.loads, text.splitlines())}


def test_a_case_is_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, CASES / "memory", "-o", "json")
    line = lines(out)["memory"]
    assert (status, err) == (0, "")
    assert line["outcome"] == "WorkflowSelected"
    assert line["healthy"] is False
    (first, *_) = line["causes"]
    assert first["category"] == "OOMKilled"
    assert first["object"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "api", "namespace": "shop"}
    assert first["field"] == "spec.template.spec.containers[name=api].resources.limits.memory"
    assert first["evidence"]
    assert line["action"]["actionType"] == "IncreaseMemoryLimits"
    assert line["action"]["parameters"]["MEMORY_LIMIT"] == "256Mi"
    assert (line["turns"], line["tokens"]) == (0, {"prompt": 0, "completion": 0})
    assert line["gaps"] > 0
    assert line["reads"] > 0
    assert line["expected"] == {"at1": True, "at3": True, "field": True, "outcome": True}


@pytest.mark.parametrize(
    ("home", "action"),
    [(None, None), ("inquest-system", None), ("shop", "CordonNode")],
    ids=["unsaid", "tenant", "home"],
)
def test_a_replay_refuses_what_the_live_case_refuses(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, home: str | None, action: str | None
) -> None:
    """A Signal beside its workload; the cause is a node, which is in no namespace."""
    place = tmp_path / "nodes" / "disk-pressure.yaml"
    place.parent.mkdir()
    (tmp_path / BACKGROUNDS).symlink_to(SCENARIOS / BACKGROUNDS)
    head, *objects = yaml.load_all((SCENARIOS / "nodes/disk-pressure.yaml").read_text(), Loader=Loader)
    del head["expected"]
    head["signal"]["metadata"]["namespace"] = "shop"
    place.write_text(case_text(head | ({"home": home} if home else {}), objects))

    _, out, err = run(capsys, place, "-o", "json")

    (line,) = lines(out).values()
    assert err == ""
    assert (line["action"] or {}).get("actionType") == action


def test_what_is_well_is_found_well(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, CASES / "quiet", "-o", "json")
    line = lines(out)["quiet"]
    assert status == 0
    assert (line["outcome"], line["healthy"], line["causes"], line["gaps"]) == ("Inconclusive", True, [], 0)


def test_a_folder_of_cases_stands_for_all_of_them_and_the_text_ends_in_the_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, out, _ = run(capsys, CASES)
    assert status == 0
    assert "2 cases" in out
    assert "false alarms among the healthy: 0 of 1" in out
    assert out.index("OOMKilled Deployment/api in shop") < out.index("2 cases")


def test_an_expectation_that_fails_is_status_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    wrong = "cause:\n  category: ImagePullFailing\n  object: {kind: Deployment, namespace: shop, name: api}\n"
    status, out, _ = run(capsys, copied(tmp_path / "a", {"expected.yaml": wrong}), "-o", "json")
    assert status == 1
    assert lines(out)["memory"]["expected"]["at1"] is False


def test_a_bad_case_is_named_and_the_others_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bad = copied(tmp_path / "bad", {"case.yaml": "takenAt: noon\n"})
    status, out, err = run(capsys, bad, CASES / "memory", "-o", "json")
    assert status == 2
    assert f"{bad}/case.yaml:1: takenAt: 'noon' is no time" in err
    assert list(lines(out)) == ["memory"]


def test_what_a_folder_says_drives_no_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bad = copied(tmp_path / "\x1b]0;owned\x07", {"case.yaml": "nothing"})
    named = (CASES / "memory" / "case.yaml").read_text().replace("name: memory", 'name: "memory\\u202e"')
    good = copied(tmp_path / "good", {"case.yaml": named})

    status, out, err = run(capsys, bad, good)

    assert status == 2
    assert "case.yaml:1" in err
    assert "owned" not in err
    assert "memory\\u{202e}" in out
    assert not any(sign in out + err for sign in ("\x1b", "\x07", "\u202e"))


def test_nothing_of_a_secret_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, err = run(capsys, CASES / "memory", "-o", "json")
    assert "hunter2" not in out + err


def test_without_a_catalogue_nothing_is_selected(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, out, _ = run(capsys, CASES / "memory", "-o", "json", "--catalogue", tmp_path)
    assert (lines(out)["memory"]["outcome"], lines(out)["memory"]["action"]) == ("NoMatchingWorkflows", None)


def test_the_log_is_not_mixed_into_the_lines() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", LOGGING, "replay", str(CASES / "memory"), "-o", "json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0
    assert list(lines(ran.stdout)) == ["memory"]
    assert "detector failed" in ran.stderr


LOGGING = """
from inquest.core.diagnosis.detectors import registry
def failing(snapshot):
    raise ZeroDivisionError
registry.examine.__defaults__ = ((*registry.DETECTORS, failing),)
from inquest.cli.main import main
main()
"""


def test_the_same_case_gives_the_same_line(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (lines(run(capsys, CASES / "memory", "-o", "json")[1])["memory"] for _ in range(2))
    assert first | {"seconds": 0} == second | {"seconds": 0}


async def test_a_text_is_evidence_like_a_log() -> None:
    recorded = case()
    found = RecordedCluster(recorded)
    target_reader = RecordedTargetReader(recorded, found, Redactor(), RecordedClock(recorded.taken_at))
    snapshot = await target_reader.snapshot(recorded.signal.spec.target)
    (text,) = snapshot.texts
    entry = next(one for one in snapshot.evidence if one.id == text.evidence)
    assert text.title == "systemctl status kubelet on node-1"
    assert "Active: active (running)" in entry.text
    assert entry.api_fact is False
    assert snapshot.since == recorded.signal.spec.firing_time


OF_THE_DEPLOYMENT = """
apiVersion: inquest.dev/v1alpha1
kind: Signal
metadata: {name: api-restarts, namespace: shop}
spec:
  name: KubePodCrashLooping
  severity: critical
  source: {type: Alertmanager}
  target: {apiVersion: apps/v1, kind: Deployment, name: api, namespace: shop}
  message: Pods of api restart again and again
  firingTime: 2026-11-22T09:50:00Z
"""


def test_a_model_of_the_settings_works_on_a_case(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = copied(tmp_path / "memory", {"signal.yaml": OF_THE_DEPLOYMENT})
    with serve(load(OOM)) as serving:
        monkeypatch.setenv("INQUEST_MODEL__PROVIDER", "openai")
        monkeypatch.setenv("INQUEST_MODEL__ENDPOINT", serving.base_url)
        monkeypatch.setenv("INQUEST_MODEL__NAME", "m-1")
        status, out, _ = run(capsys, folder, "--model", "m-1", "-o", "json")

    line = json.loads(next(text for text in out.splitlines() if text.startswith("{")))
    assert status == 0
    assert line["turns"] == len(serving.requests)
    assert line["turns"] > 2
    assert line["tokens"]["prompt"] > 0
    assert line["causes"][0]["category"] == "OOMKilled"
    assert line["action"]["workflow"] == "increase-memory-limit"


SWITCHES = {"ERROR_HINTS": "false", "PLAYBOOKS": "false", "VISIBLE_PLAN": "false", "SUFFICIENCY": "off"}
"""To gather first and then to conclude is always asked for: there is no switch for it."""
LOST = {"name": "kubectl_describe", "arguments": {"kind": "Pod", "name": "nobody", "namespace": "shop"}}
TRACES = {"hints": '"hint": ', "playbooks": "## Playbooks that match", "plan": "INVESTIGATION_PLAN"}


@pytest.mark.parametrize("off", [False, True], ids=["all on", "H07 all off"])
def test_a_crash_loop_is_investigated_with_every_habit_switched_off(
    off: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = copied(tmp_path / "memory", {"signal.yaml": OF_THE_DEPLOYMENT})
    base = load(OOM)
    first = base.steps[0].model_dump(by_alias=True)
    first["reply"]["calls"] = [*first["reply"]["calls"], LOST]
    for name, value in SWITCHES.items() if off else ():
        monkeypatch.setenv(f"INQUEST_RCA__{name}", value)
    with serve(base.model_copy(update={"steps": (Step.model_validate(first), *base.steps[1:])})) as serving:
        monkeypatch.setenv("INQUEST_MODEL__PROVIDER", "openai")
        monkeypatch.setenv("INQUEST_MODEL__ENDPOINT", serving.base_url)
        monkeypatch.setenv("INQUEST_MODEL__NAME", "m-1")
        status, _, _ = run(capsys, folder, "--model", "m-1", "-o", "json")

    said = [message["content"] or "" for request in serving.requests for message in request["messages"]]
    assert status == 0
    assert any('pods \\"nobody\\" not found' in text for text in said)
    assert {name for name, trace in TRACES.items() if any(trace in text for text in said)} == (
        set() if off else set(TRACES)
    )


def test_a_model_that_is_not_configured_is_named() -> None:
    with pytest.raises(Misconfigured, match="no model 'gpt' is configured"):
        app(["replay", str(CASES / "memory"), "--model", "gpt"], result_action="return_value")
