"""Nobody listens: no collector of traces, metrics or logs, and no receiver of notices. A case goes its way."""

from __future__ import annotations

import socket
from contextlib import suppress

import pytest

from tests.integration.faults.api.conftest import Trouble
from tests.support.process import Operator
from tests.support.tables import row
from tests.support.world import conditions, phase_of

pytestmark = pytest.mark.xdist_group("faults-listeners")

SILENT = socket.create_server(("127.0.0.1", 0))
"""The system completes each connection to it; nobody reads."""
NOWHERE = f"http://127.0.0.1:{SILENT.getsockname()[1]}"
SETTINGS = {"telemetry": {"traces": True, "endpoint": NOWHERE}, "herald": {"webhooks": [f"{NOWHERE}/hook"]}}
"""Its log goes into a file that nobody collects, its metrics are asked for by nobody."""


def spoken_to() -> set[str]:
    """What was asked for there, and never answered."""
    SILENT.setblocking(False)
    paths = set()
    with suppress(BlockingIOError):
        while True:
            connection, _ = SILENT.accept()
            with connection:
                connection.setblocking(True)
                paths.add(connection.recv(1_024).split(b" ")[1].decode())
    return paths


@row("FA-30")
def test_a_case_to_which_nobody_listens_ends_as_always(trouble: Trouble, process: Operator) -> None:
    found = trouble()
    case = found.begun()
    found.answer()

    asked = found.same_end(case, told="Pending")
    (request,) = found.world.api.list("RemediationApprovalRequest", found.world.namespace)
    assert found.world.decide(
        found.world.reaches("RemediationApprovalRequest", request, "Pending"), "Rejected"
    ).accepted
    ended = found.world.reaches("Investigation", asked, "Failed")
    name = ended["metadata"]["name"]
    found.world.shows("Investigation", name, lambda seen: conditions(seen).get("Recorded") == ("True", "Stored"))

    assert phase_of(ended) == "Failed"
    assert process.readiness()[0] == 200
    process.stop()
    assert spoken_to() == {"/hook", "/v1/traces"}, "it has tried"
    process.start()
