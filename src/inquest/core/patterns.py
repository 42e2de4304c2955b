"""Regular expressions that somebody else wrote, run in linear time: an engine that never goes back over a text."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import re2

MAX_PATTERN: Final = 1024
"""Characters of an expression."""

Compiled = tuple[Any, str]
"""The expression, with `search`, and no fault; or None and the fault."""


@lru_cache(maxsize=512)
def compiled(text: str) -> Compiled:
    """An expression of RE2; what would need going back over the text (look-around, back-references) is a fault."""
    if len(text) > MAX_PATTERN:
        return None, f"is longer than {MAX_PATTERN} characters"
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options), ""
    except re2.error as error:
        said = error.args[0] if error.args else "no expression"
        return None, f"is no expression of RE2: {said.decode() if isinstance(said, bytes) else said}"
    except UnicodeEncodeError:
        return None, "holds half of a character"
