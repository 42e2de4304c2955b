"""What kubectl writes is read while it is being written."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from hack.crash.watch import Told, Watch, watching


def test_an_event_that_is_cut_anywhere_is_read_once_it_is_whole(tmp_path: Path) -> None:
    event = {"type": "ADDED", "object": {"metadata": {"uid": "1"}, "message": "“quoted” – 48 MiB"}}
    text = (json.dumps(event, indent=4, ensure_ascii=False) + "\n").encode() * 2
    told = Told(tmp_path / "events")

    for cut in range(len(text) + 1):
        told.path.write_bytes(text[:cut])
        seen = len(told.read_on())
        assert seen <= 2

    assert told.events == [event, event]


SERVER = """
import json, pathlib, sys, time
seen = pathlib.Path(sys.argv[1])
first = not seen.exists()
seen.touch()
gone = {"type": "ERROR", "object": {"kind": "Status", "metadata": {}, "code": 410}}
there = {"type": "ADDED", "object": {"metadata": {"uid": "1"}}}
print(json.dumps(gone if first else there), flush=True)
time.sleep(0 if first else 600)
"""


def test_a_watch_that_the_server_ends_is_begun_again(tmp_path: Path) -> None:
    kubectl = [sys.executable, "-c", SERVER, str(tmp_path / "asked")]

    with watching(kubectl, tmp_path / "run") as watch:
        end = time.monotonic() + 60
        while not any(watch.now(kind) for kind in ("Job", "Pod", "Lease")) and time.monotonic() < end:
            time.sleep(0.05)
        seen = [one for kind in ("Job", "Pod", "Lease") for one in watch.now(kind)]

    assert seen[0] == {"metadata": {"uid": "1"}}


def test_what_was_deleted_while_nobody_watched_is_not_there(tmp_path: Path) -> None:
    there = {"type": "ADDED", "object": {"metadata": {"uid": "1"}}}
    (tmp_path / "Job.json").write_text("\n".join(map(json.dumps, [{"type": "BEGUN"}, there, {"type": "BEGUN"}])))
    watch = Watch(tmp_path)

    assert watch.now("Job") == []
    assert watch.versions("Job") == [there["object"]]
