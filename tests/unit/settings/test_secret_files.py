"""A mounted Secret is read whole or refused by the name of its setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from inquest.errors import Misconfigured
from inquest.settings.base import secret_in


def test_the_end_of_the_line_is_no_part_of_a_secret(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("abc\n")

    assert secret_in(tmp_path / "key", "model.key_file") == "abc"


@pytest.mark.parametrize("content", [None, "gehe\u00efm", "\ufeffabc"], ids=["no file", "no ASCII", "byte order mark"])
def test_what_no_header_can_carry_is_refused_and_never_shown(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_text(content, encoding="utf-8")

    with pytest.raises(Misconfigured, match=r"^model\.key_file cannot be read: \w+$"):
        secret_in(file, "model.key_file")
