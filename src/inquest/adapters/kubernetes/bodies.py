"""The body of a server-side apply: JSON that the API server's YAML parser reads as the same text.

The server parses `application/apply-patch+yaml` as YAML 1.1. There half of a surrogate pair is no character, so the
escapes that JSON writes for a character beyond the basic plane are refused. Raw control characters are refused too, and
a raw NEL or line separator inside a string is folded into a space.
"""

from __future__ import annotations

import json
from typing import Final

from inquest.ports.kubernetes import Json

APPLY: Final = "application/apply-patch+yaml"

_ESCAPED: Final = (*range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF)
"""Characters that stand in a YAML document as an escape only (https://yaml.org/spec/1.1, sections 5.1 and 5.4)."""
_REPLACED: Final = range(0xD800, 0xE000)
"""Halves of surrogate pairs: Python's strings can hold one alone, UTF-8 cannot."""
_TABLE: Final = {code: f"\\u{code:04x}" for code in _ESCAPED} | dict.fromkeys(_REPLACED, "\ufffd")


def apply_body(body: Json) -> bytes:
    """The document in UTF-8; half a character becomes U+FFFD, everything else arrives as it is."""
    return json.dumps(body, ensure_ascii=False).translate(_TABLE).encode()
