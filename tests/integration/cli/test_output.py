"""What reaches a terminal, and what an exit status says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from inquest import errors
from inquest.adapters.kubernetes.credentials import Impersonation, from_kubeconfig, namespace_of, usual_kubeconfig
from inquest.api.registry import KINDS
from inquest.cli.cases.list import SPARE, table_columns
from inquest.cli.exits import MEANINGS, Exit, exit_of
from inquest.cli.options import seconds_of
from inquest.cli.output import fit_lines, fitting, machine_text, one_line, print_lines, table_lines
from tests.support.tables import each_row

HOSTILE = "\x1b]0;owned\x07\x1b[2Jname\x9b31m\u202egnp\u200b"


def _drives_a_terminal(text: str) -> bool:
    return any((ord(sign) < 0x20 and sign not in "\n\t") or 0x7F <= ord(sign) < 0xA0 for sign in text)


def test_nothing_that_is_said_drives_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_lines(HOSTILE)

    out = capsys.readouterr().out
    assert not _drives_a_terminal(out)
    assert "\u202e" not in out
    assert "name" in out


@pytest.mark.parametrize("form", ["json", "yaml"])
@settings(max_examples=30)
@given(text=st.text(st.characters(codec="utf-8")))
def test_json_and_yaml_say_the_same_and_drive_no_terminal(form: str, text: str) -> None:
    written = machine_text({"text": text, "hostile": HOSTILE}, form)  # type: ignore[arg-type]

    read = json.loads(written) if form == "json" else yaml.safe_load(written)
    assert read == {"text": text, "hostile": HOSTILE}
    assert not _drives_a_terminal(written)


def test_words_of_any_language_stay_as_they_are() -> None:
    assert "zuständig: 東京" in machine_text({"team": "zuständig: 東京"}, "yaml")


def test_a_cell_with_line_breaks_stays_in_its_row() -> None:
    assert table_lines(["NAME", "WHY"], [["a", "one\ntwo"], ["longer", ""]]) == [
        "NAME     WHY",
        "a        one two",
        "longer",
    ]
    assert one_line("a\r\n\tb") == "a b"


HEAD = ["NAME", "SIGNAL", "TARGET", "COUNT", "AGE"]
ROW = ["inv-1", "KubePodCrashLooping", "Deployment/checkout", "17", "4m"]


@each_row(
    ("width", "shown"),
    [
        (None, HEAD),
        (63, HEAD),
        (62, ["NAME", "SIGNAL", "TARGET", "AGE"]),
        # What is missed more is not there; what is missed less still fits.
        (41, ["NAME", "TARGET", "COUNT", "AGE"]),
        (40, ["NAME", "TARGET", "AGE"]),
        (10, ["NAME", "TARGET"]),
    ],
)
def test_a_narrow_terminal_keeps_the_columns_that_are_missed_most(width: int | None, shown: list[str]) -> None:
    kept, gone = fitting(HEAD, [ROW], ("COUNT", "SIGNAL", "AGE"), width)

    assert [HEAD[number] for number in kept] == shown
    assert gone == [word for word in HEAD if word not in shown]


LINES = ["case", "one", "two", "three is longer", "four"]


@each_row(
    ("width", "height", "shown"),
    [
        (20, 5, LINES),
        (20, 4, ["case", "…", "three is longer", "four"]),
        # The longer line takes two rows here.
        (10, 6, LINES),
        (10, 5, ["case", "…", "three is longer", "four"]),
        (10, 4, ["case", "…", "four"]),
        (20, 1, ["case", "…"]),
    ],
)
def test_a_terminal_that_is_too_low_shows_the_first_line_and_the_newest(
    width: int, height: int, shown: list[str]
) -> None:
    assert fit_lines(LINES, width, height) == shown


def test_every_column_that_can_be_spared_is_one_that_a_kind_has() -> None:
    shown = {column.name.upper() for entry in KINDS for column in entry.columns if not column.wide}

    assert set(SPARE) <= shown
    assert shown - set(SPARE) == {"NAME", "ID", "TARGET", "ACTION", "PHASE", "RESULT", "REGISTRATION"}


def test_wide_signs_do_not_move_the_next_column() -> None:
    assert table_lines(["TEAM", "WHY"], [["東京", "a"], ["zuständig", "b"]]) == [
        "TEAM        WHY",
        "東京        a",
        "zuständig   b",
    ]


def test_columns_of_the_server_are_shown_as_kubectl_shows_them() -> None:
    found = {
        "columnDefinitions": [{"name": "Name"}, {"name": "Phase"}, {"name": "Model", "priority": 1}],
        "rows": [{"cells": ["inv-1", None, "m"], "object": {"metadata": {"namespace": "shop"}}}],
    }

    assert table_columns(found, wide=False, everywhere=False) == (["NAME", "PHASE"], [["inv-1", ""]])
    assert table_columns(found, wide=True, everywhere=True) == (
        ["NAMESPACE", "NAME", "PHASE", "MODEL"],
        [["shop", "inv-1", "", "m"]],
    )


@each_row(
    ("error", "status"),
    [
        (errors.NotFound("x"), Exit.NOT_FOUND),
        (errors.Forbidden("x"), Exit.FORBIDDEN),
        (errors.Conflict("x"), Exit.CONFLICT),
        (errors.Unavailable("x"), Exit.UNAVAILABLE),
        (errors.RateLimited("x"), Exit.UNAVAILABLE),
        (errors.Misconfigured("x"), Exit.MISUSED),
        (errors.Invalid("x"), Exit.MISUSED),
    ],
)
def test_an_error_has_the_exit_status_of_its_class(error: errors.InquestError, status: Exit) -> None:
    assert exit_of(error) is status


def test_every_exit_status_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Exit)


def test_a_time_is_written_as_kubectl_takes_it() -> None:
    assert [seconds_of(text) for text in ("5s", "2m", "7", "0")] == [5.0, 120.0, 7.0, None]
    with pytest.raises(errors.Misconfigured, match="no time"):
        seconds_of("soon")


# --- the kubeconfig -----------------------------------------------------------------------------------------


def _kubeconfig(path: Path, name: str, user: dict[str, object], **context: str) -> Path:
    config = {
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example"}}],
        "users": [{"name": name, "user": {"token": f"token-of-{name}", **user}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **context}}],
    }
    path.write_text(yaml.safe_dump(config))
    return path


async def test_files_of_a_list_are_taken_together_as_kubectl_does(tmp_path: Path) -> None:
    one = _kubeconfig(tmp_path / "one", "one", {}, namespace="shop")
    two = _kubeconfig(tmp_path / "two", "two", {})
    both = f"{one}:{two}:{tmp_path / 'absent'}"

    assert (await from_kubeconfig(both, "one")()).server == "https://one.example"
    assert (await from_kubeconfig(both, "two")()).token == "token-of-two"
    assert namespace_of(both, "one") == "shop"
    assert namespace_of(both, "two") == ""


async def test_a_kubeconfig_that_acts_as_somebody_never_acts_as_itself(tmp_path: Path) -> None:
    plain = _kubeconfig(tmp_path / "plain", "plain", {"as": "jane"})
    groups = _kubeconfig(tmp_path / "groups", "groups", {"as": "jane", "as-groups": ["ops", "sre"], "as-uid": "7"})
    nobody = _kubeconfig(tmp_path / "nobody", "nobody", {"as-groups": ["ops"]})
    extra = _kubeconfig(tmp_path / "extra", "extra", {"as": "jane", "as-user-extra": {"reason": ["why"]}})

    assert (await from_kubeconfig(plain)()).impersonate == Impersonation("jane")
    assert (await from_kubeconfig(plain, impersonate=Impersonation("bob"))()).impersonate == Impersonation("bob")
    assert (await from_kubeconfig(groups)()).impersonate == Impersonation("jane", ("ops", "sre"), "7")
    # Whoever names another user does not take that one's groups along.
    assert (await from_kubeconfig(groups, impersonate=Impersonation("bob"))()).impersonate == Impersonation("bob")
    with pytest.raises(errors.Misconfigured, match="need a user"):
        await from_kubeconfig(nobody)()
    with pytest.raises(errors.Misconfigured, match="as-user-extra"):
        await from_kubeconfig(extra)()


async def test_how_a_kubeconfig_reaches_its_server_is_kept(tmp_path: Path) -> None:
    path = _kubeconfig(tmp_path / "one", "one", {})
    config = yaml.safe_load(path.read_text())
    how = {"tls-server-name": "api.shop", "proxy-url": "http://proxy.example:3128", "insecure-skip-tls-verify": True}
    config["clusters"][0]["cluster"] |= how
    path.write_text(yaml.safe_dump(config))

    login = await from_kubeconfig(path)()

    assert (login.server_name, login.proxy, login.is_unverified) == ("api.shop", "http://proxy.example:3128", True)


async def test_a_kubeconfig_that_is_not_there_or_has_no_such_context_is_named(tmp_path: Path) -> None:
    there = _kubeconfig(tmp_path / "config", "one", {})

    with pytest.raises(errors.Misconfigured, match="absent"):
        await from_kubeconfig(tmp_path / "absent")()
    with pytest.raises(errors.Misconfigured, match="other"):
        namespace_of(there, "other")


CONTEXT = "current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
CLUSTERS = "clusters: [{name: a, cluster: {server: 'https://a.example'}}]\n"
USERS = "users: [{name: a, user: {token: hunter2}}]\n"
BROKEN = {
    "a context without a user": (
        CONTEXT.replace(", user: a", "") + CLUSTERS + USERS,
        "its context names no user",
    ),
    "a user that is not there": (CONTEXT.replace("user: a", "user: b") + CLUSTERS + USERS, "there is no user b"),
    "no YAML": ("a: [", "line 1: no YAML: "),
    "no mapping": ("- a\n", "it holds no kubeconfig"),
    "nothing": ("", "it holds no kubeconfig"),
    "a list that is none": ("current-context: a\ncontexts: 5\n", "contexts is no list"),
    "an entry that is none": ("current-context: a\ncontexts: [a]\n", "contexts[0] has no name"),
    "an entry without its part": ("current-context: a\nusers: [{name: a, user: null}]\n", "users[0] (a) has no user"),
    "a value of another type": (
        CONTEXT + CLUSTERS + "users: [{name: a, user: {client-certificate-data: 5}}]\n",
        "a value is not what it has to be: ",
    ),
    "a cluster without an address": (
        CONTEXT + "clusters: [{name: a, cluster: {certificate-authority-data: hunter2}}]\n" + USERS,
        "server is missing",
    ),
    "no current context": (
        CONTEXT.replace("current-context: a\n", "") + CLUSTERS + USERS,
        "it has no current context; there are a",
    ),
    "another current context": (
        CONTEXT.replace("current-context: a\n", "current-context: c\n") + CLUSTERS + USERS,
        "there is no context c; there are a",
    ),
}


@pytest.mark.parametrize(("text", "told"), BROKEN.values(), ids=BROKEN.keys())
async def test_what_is_wrong_with_a_kubeconfig_is_one_line_that_names_it(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(text)

    with pytest.raises(errors.Misconfigured) as raised:
        await from_kubeconfig(path)()

    assert str(raised.value).startswith(f"kubeconfig {path}: ")
    assert told in str(raised.value)
    assert "hunter2" not in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


def test_a_file_that_the_environment_names_is_meant_though_it_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "gone"))

    with pytest.raises(errors.Misconfigured, match="gone: there is no such file"):
        namespace_of(usual_kubeconfig())


def test_without_a_kubeconfig_none_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert usual_kubeconfig() == ""
