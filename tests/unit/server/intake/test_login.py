"""Who may send: each answer of the login, and what is asked before anything is read (resources, section 11.1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from inquest.core.redaction.redactor import Redactor
from inquest.errors import Misconfigured
from inquest.server.intake.token import MountedToken
from inquest.telemetry.metrics import INTAKE_LOGINS
from tests.support.reviews import Reviews
from tests.unit.server.intake.conftest import Opening, Server

ALERTS = "/api/v1/signals/alertmanager"
EMPTY = {"version": "4", "alerts": []}
TOKEN = "kJ8wPq2LxTn5VbYc"


def bearer(token: str) -> dict[bytes, bytes]:
    return {b"authorization": f"Bearer {token}".encode("latin-1")}


CALLERS = {
    "C-IN-5 no token": ({}, "", 401),
    "another scheme": ({b"authorization": b"Basic good"}, "", 401),
    "an empty token": (bearer(""), "", 401),
    "a token of nobody": (bearer("unknown"), "", 401),
    "a token that is no token": (bearer("x" * 20_000), "", 401),
    "a user without a name": (bearer("odd"), "", 401),
    "no right": (bearer("weak"), "", 403),
    "no token review": (bearer("good"), "authenticate", 503),
    "no access review": (bearer("good"), "authorise", 503),
    "a sender": (bearer("good"), "", 200),
}


@pytest.mark.parametrize(("headers", "down", "status"), CALLERS.values(), ids=CALLERS.keys())
async def test_only_who_may_create_signals_is_let_in(
    opening: Opening, headers: dict[bytes, bytes], down: str, status: int
) -> None:
    before = INTAKE_LOGINS.labels(str(status) if status != 200 else "passed")._value.get()
    async with opening(Reviews("am", down)) as http:
        answer = await http.post(ALERTS, json=EMPTY, headers=headers)

    assert answer.status_code == status
    assert answer.headers.get("www-authenticate") == ("Bearer" if status == 401 else None)
    assert answer.headers.get("retry-after") == ("5" if status == 503 else None)
    assert INTAKE_LOGINS.labels(str(status) if status != 200 else "passed")._value.get() == before + 1


@pytest.mark.parametrize("path", [ALERTS, "/api/v1/signals", "/", "/metrics"])
async def test_without_a_token_nothing_is_read_and_nothing_told(opening: Opening, server: Server, path: str) -> None:
    too_much = b" " * (2 * 1024 * 1024)

    async with opening(Reviews("am")) as http:
        told = [await http.post(path, content=body) for body in (b"{", too_much)]

    assert [(answer.status_code, answer.json()["detail"]) for answer in told] == [
        (401, "Missing Authorization header")
    ] * 2
    assert server.calls == []


async def test_a_good_token_is_asked_about_once_and_a_bad_one_every_time(opening: Opening) -> None:
    reviewer = Reviews("am")
    async with opening(reviewer) as http:
        for token in ("good", "good", "unknown", "unknown", "weak", "weak"):
            await http.post(ALERTS, json=EMPTY, headers=bearer(token))

    assert reviewer.asked == ["good", "unknown", "unknown", "weak", "weak"]


async def test_a_mounted_token_lets_its_holder_in_and_is_masked(opening: Opening, tmp_path: Path) -> None:
    file, redactor = tmp_path / "token", Redactor()
    file.write_text(f"{TOKEN}\n")
    async with opening(MountedToken(file, redactor.learn)) as http:
        answers = [
            await http.post(ALERTS, json=EMPTY, headers=bearer(token))
            for token in (TOKEN, TOKEN[:-1], f"{TOKEN}x", "é")
        ]

    assert [answer.status_code for answer in answers] == [200, 401, 401, 401]
    assert TOKEN not in redactor.text(f"it was {TOKEN} that came").value


async def test_another_token_in_the_file_is_the_one_from_now_on(opening: Opening, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("another-" + TOKEN)
    async with opening(MountedToken(file, lambda _: None)) as http:
        early = await http.post(ALERTS, json=EMPTY, headers=bearer(TOKEN))
        file.write_text(TOKEN)
        later = await http.post(ALERTS, json=EMPTY, headers=bearer(TOKEN))
        file.unlink()
        gone = await http.post(ALERTS, json=EMPTY, headers=bearer("another-" + TOKEN))

    assert (early.status_code, later.status_code, gone.status_code) == (401, 200, 503)


@pytest.mark.parametrize("text", [None, b"", b"short", b"\xff" * 20], ids=["no file", "empty", "short", "no text"])
def test_a_token_that_protects_nothing_is_for_a_person(tmp_path: Path, text: bytes | None) -> None:
    file = tmp_path / "token"
    if text is not None:
        file.write_bytes(text)

    with pytest.raises(Misconfigured, match=r"intake\.token_file"):
        MountedToken(file, lambda _: None).held()
