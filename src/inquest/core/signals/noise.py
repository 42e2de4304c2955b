"""Text of a person that asks for nothing: greetings, thanks, and our own words come back.

Only what consists of nothing else is noise. In doubt it is not: a question, a figure, a name, or one word that is not
known here, and the Signal is looked at.
"""

from __future__ import annotations

import re
from typing import Final

REPORT_LINES: Final = ("Investigation: ", "Root cause: ", "Look at it: kubectl describe inv ")
"""How a message of ours can be known again."""
MOST_WORDS: Final = 15
_SMALL_TALK: Final = """\
hi hello hey hiya greetings good morning afternoon evening day night team all folks everyone everybody guys there
thanks thank you thx ty cheers many much so very lot a lots again great nice cool awesome perfect excellent super
ok okay k fine yes yep yeah no nope sure right agreed done understood got it will do noted welcome you're your
bye goodbye see ya later have weekend well lol haha sorry please worries problem np"""
_WORDS: Final = frozenset(_SMALL_TALK.split())
_ASKS: Final = frozenset({"problem", "no", "fine", "please", "will", "do", "it", "right"})
"""Words that are small talk beside others, and nothing to rely on alone."""
_WORD: Final = re.compile(r"[a-z']+")
_SPOKEN: Final = re.compile(r"[\w\s,.!:;()'’\-–—]*")


def is_chatter(text: str) -> bool:
    """Whether a person's text holds nothing but small talk."""
    spoken = text.strip().lower().replace("’", "'")
    words = _WORD.findall(spoken)
    if not words or len(words) > MOST_WORDS or not _SPOKEN.fullmatch(_plain(spoken)) or any(map(str.isdigit, spoken)):
        return False
    return all(word in _WORDS for word in words) and any(word not in _ASKS for word in words)


def _plain(text: str) -> str:
    """Without the pictures that people end a line with."""
    return "".join(letter for letter in text if ord(letter) < 0x2600)


def is_own_report(text: str) -> bool:
    """Whether a message of ours came back as a Signal."""
    lines = [line.strip() for line in text.splitlines()]
    return all(any(line.startswith(mark) for line in lines) for mark in REPORT_LINES)
