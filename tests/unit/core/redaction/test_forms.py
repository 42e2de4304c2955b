"""Secrets as they are hidden, and as they stand in statements, forms and lists; what is shown later shows none."""

from __future__ import annotations

import json
import sys
from typing import Any

from inquest.core.redaction.mask import MARK, WITHHELD
from inquest.core.redaction.redactor import Redactor
from inquest.core.text import filter_text, make_visible, shorten
from tests.support.tables import each_row

REDACTOR = Redactor()
S = "hunter" + "2Zq"
TOKEN = "gh" + "p_" + "a1B2" * 9
HIDDEN = {
    "colours in a key": f"pass\x1b[31mword\x1b[0m={S}",
    "colours of 24 bits": f"pass\x1b[38;2;1;2;3mword\x1b[0m={S}",
    "eight-bit colours": f"pass\x9b31mword={S}",
    "colours inside colours": f"pass\x1b[\x1b[0m31mword={S}",
    "colours in a token": "gh\x1b[1mp_" + "a1B2" * 9,
    "zero width in a key": f"pass\u200bword={S}",
    "zero width in a token": "gh\u200bp_" + "a1B2" * 9,
    "soft hyphen": f"pass\u00adword: {S}",
    "right to left": f"pass\u202eword: {S}",
    "combining marks": f"p\u0332a\u0332s\u0332s\u0332word={S}",
    "full width": f"\uff50\uff41\uff53\uff53word\uff1d{S}",
    "a struck letter": f"passx\bword={S}",
    "bold by overstriking": "".join(f"{letter}\b{letter}" for letter in "password") + f": {S}",
    "escapes of colours": f't {{"msg":"pass\\u001b[31mword={S}"',
    "an escape before a secret": f"password=\x1b{S}",
    "an escape before a key": "\x1b" + TOKEN,
    "null": f"pass\0word={S}",
    "bare backspace": f"pass\b\u200bsword={S}",
    "colours in JSON": json.dumps({"msg": f"pass\x1b[31mword={S}"}),
    "entities": f"&#112;assw&#x6f;rd={S}",
    "escapes of Unicode": f"\\u0070assword={S}",
    "escaped elements": f"\\u003cpassword\\u003e{S}\\u003c/password\\u003e",
    "percent in a key": f"%70assword={S}",
    "lines of Windows": f"- name: DB_PASSWORD\r\n  value: {S}\r\n",
    "zero width and colours": f"x\u200bpass\x1b[0mword={S}",
}
TOLD = {
    "with password": f"ALTER ROLE app WITH PASSWORD '{S}';",
    "with encrypted password": f"CREATE USER app WITH ENCRYPTED PASSWORD '{S}'",
    "identified by": f"CREATE USER 'app'@'%' IDENTIFIED BY '{S}'",
    "identified with by": f"create user app identified with mysql_native_password by '{S}'",
    "identified by, bare": f"ALTER USER scott IDENTIFIED BY {S};",
    "set password": f"SET PASSWORD FOR 'app'@'%' = PASSWORD('{S}')",
    "PASS": f"PASS={S}",
    "DBPASS": f"DBPASS={S}",
    '"pass"': f'{{"user":"a","pass":"{S}"}}',
    "pass in cut JSON": f'login {{"user":"a","pass":"{S}"',
    "pass=": f"connect user=a pass={S} ok",
    "--pass": f"run --pass {S}",
    "JSESSIONID": f"GET /a;JSESSIONID={S} 200",
    "PHPSESSID": f"cookie jar PHPSESSID={S}",
    "connect.sid": f"connect.sid={S}",
    "ASP.NET_SessionId": f"ASP.NET_SessionId={S}",
    "CDATA": f"<password><![CDATA[{S}<&>]]></password>",
    "CDATA on a line": f"<password>\n  <![CDATA[{S}]]>\n</password>",
    "index": f"password[0]={S}",
    "index by name": f"password[new]={S}",
    "list": f"passwords:\n  - {S}\n  - 'b{S}'\n",
    "list without indent": f"a:\n  passwords:\n  - {S}\n  - b{S}\n",
    "list in a line": f"passwords: [{S}, b{S}]\n",
    "anchor": f"password: &pw {S}\n",
    "quoted anchor": f'password: &pw "{S}"\n',
    "alias": f"x: &pw {S}\npassword: *pw\n",
    "tag": f"password: !!str {S}\n",
    "multipart": f'--b\r\nContent-Disposition: form-data; name="password"\r\n\r\n{S}\r\n--b--',
    "multipart in a line": f'Content-Disposition: form-data; name=\\"password\\"\\r\\n\\r\\n{S}\\r\\n--b',
    "hexadecimal": "blob " + f"password={S}".encode().hex(),
    "hexadecimal with 0x": "blob 0x" + f"password={S}".encode().hex().upper(),
    "annotation": f"Annotations:  example.com/db-password: {S}\n",
    "annotation in YAML": f"metadata:\n  annotations:\n    example.com/password: {S}\n",
    "annotation in JSON": json.dumps({"metadata": {"annotations": {"example.com/db-password": S}}}),
    "quoted in a connection string": f'Server=s;Uid=sa;Password="{S};x";',
    "AUTH as Redis prints it": f'1.2 [0 10.0.0.1:5] "AUTH" "default" "{S}"',
}
PLAIN = {
    "passed tests": "--- PASS: TestCheckout (0.00s)\nPASS\nok shop/checkout 0.2s",
    "report": '{"summary":{"pass":12,"fail":0,"skip":1}}',
    "bypass": "bypass: enabled\ncompass=north",
    "identified": "the pod identified by uid abc runs on a node",
    "colourless accents": "Größe überschritten, naïve façade",
    "hidden and harmless": "status\u200b ok, r\u00e9sum\u00e9",
    "escapes": '{"msg":"a \\u003c b \\u003e c"}',
    "lists": "imagePullSecrets:\n- name: regcred\ncredentials:\n- name: git\n",
    "digest": "sha256:" + "ab12" * 16,
    "struck": "50%\b\b\b60% done",
    "form": 'form-data; name="file"\r\n\r\nreport.txt\r\n',
}


def redacted(text: str) -> str:
    """By a redactor that has seen nothing before: what it remembers proves nothing."""
    return Redactor().text(text).value


def is_bare(text: str) -> bool:
    hexadecimal = S.encode().hex()
    return not any(secret in text or secret in text.lower() for secret in (S, TOKEN, hexadecimal))


@each_row("text", [*HIDDEN.values(), *TOLD.values()], ids=[*HIDDEN, *TOLD])
def test_a_secret_is_gone_from_the_text_and_from_all_that_is_made_of_it(text: str) -> None:
    found = redacted(text)

    assert MARK in found
    assert redacted(found) == found
    assert all(is_bare(later) for later in (found, make_visible(found), filter_text(found), shorten(found, 4096)))
    assert is_bare(make_visible(redacted(make_visible(text))))
    assert MARK in str(REDACTOR.data({"log": text}).value)
    assert MARK in str(REDACTOR.strings({"log": [text]}).value)


@each_row("text", PLAIN.values(), ids=PLAIN)
def test_a_text_that_hides_nothing_stays_as_it_is(text: str) -> None:
    assert redacted(text) == text
    assert REDACTOR.data({"log": text}).value == {"log": text}


def test_colours_go_and_characters_that_hide_nothing_stay_to_be_seen() -> None:
    assert redacted("\x1b[31mred\x1b[0m alert\u200b") == "red alert\u200b"


def test_colours_without_end_are_withheld() -> None:
    assert redacted("pass" + "\x1b[" * 9 + "0m" * 9 + f"word={S}") == WITHHELD


@each_row(
    "scrap",
    ["\x1b[", "\x1b", "\b", "a\b", "&#1", "\\u00", "%7", "&a ", ": *a &a b\n", "password '", "identified by ", "- x\n",
     "form-data; name=\"a\"\n\n", "<a><![CDATA[", "password[", "passwords:\n- ", "\u0332", "PASSWORD('", "sess;"],
    ids=repr,
)  # fmt: skip
def test_work_grows_with_the_text(scrap: str) -> None:
    short, long = (_work(scrap * (size // len(scrap))) for size in (3_000, 12_000))

    assert long <= 4 * 1.6 * short + 2_000


def _work(text: str) -> int:
    done = 0

    def count(frame: Any, event: str, _: Any) -> None:
        nonlocal done
        done += event == "call"

    sys.setprofile(count)
    try:
        REDACTOR.text(text)
    finally:
        sys.setprofile(None)
    return done
