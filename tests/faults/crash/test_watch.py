"""What kubectl writes is read while it is being written."""

from __future__ import annotations

import json
from pathlib import Path

from hack.crash.watch import Told


def test_an_event_that_is_cut_anywhere_is_read_once_it_is_whole(tmp_path: Path) -> None:
    event = {"type": "ADDED", "object": {"metadata": {"uid": "1"}, "message": "“quoted” – 48 MiB"}}
    text = (json.dumps(event, indent=4, ensure_ascii=False) + "\n").encode() * 2
    told = Told(tmp_path / "events")

    for cut in range(len(text) + 1):
        told.path.write_bytes(text[:cut])
        seen = len(told.read_on())
        assert seen <= 2

    assert told.events == [event, event]
