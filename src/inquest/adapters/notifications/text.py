"""Text of a cluster as a receiver may show it: data that mentions nobody, links to nothing and draws nothing.

Slack reads `<`, `>` and `&` as its own wherever they stand; everything else that a chat reads as markup has no meaning
inside a code block, out of which only backticks lead. `@channel` and its like notify in Mattermost wherever they stand.
"""

from __future__ import annotations

import re
from typing import Final

from inquest.core.text import make_visible, shorten
from inquest.ports.process import Notice

MOST_CHAT: Final = 3000
"""Characters of a section (Slack's own bound)."""
MOST_BODY: Final = 20_000
MOST_PARTS: Final = 10

_BROADCAST: Final = re.compile(r"@(?=(?:all|channel|everyone|here)\b)", re.IGNORECASE)
_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "'"})
_CUT: Final = "\n… (cut)"


def text(notice: Notice, most: int = MOST_BODY) -> str:
    """What happened or is asked, then the particulars; a text that was cut says so."""
    whole = make_visible(f"{notice.title}\n{notice.body}")
    return whole if len(whole) <= most else f"{shorten(whole, most - len(_CUT))}{_CUT}"


def chat_text(notice: Notice) -> str:
    """The same for a chat: our words, then the cluster's in a code block."""
    return _block(notice, text(notice, MOST_CHAT))


def chat_parts(notice: Notice) -> tuple[str, ...]:
    """The whole for a chat, in as many messages as it takes."""
    pages = _split(notice)
    return tuple(_block(notice, page, number, len(pages)) for number, page in enumerate(pages, start=1))


def _split(notice: Notice) -> tuple[str, ...]:
    """The whole text in pieces that a chat takes, cut at line ends; what is beyond the last is said."""
    rest, pages = make_visible(f"{notice.title}\n{notice.body}"), list[str]()
    while rest and len(pages) < MOST_PARTS:
        page = _page(rest, MOST_CHAT - len(_CUT))
        pages.append(page)
        rest = rest[len(page) :].removeprefix("\n")
    return (*pages[:-1], f"{pages[-1]}{_CUT}") if rest else tuple(pages)


def _page(rest: str, room: int) -> str:
    """As many whole lines as fit; of a line that is longer than a page, as much as fits."""
    if len(rest) <= room:
        return rest
    page = shorten(rest, room) or rest[:room]
    lines = page.rpartition("\n")[0]
    return lines if len(lines) > room // 2 else page


def _block(notice: Notice, page: str, number: int = 1, of: int = 1) -> str:
    # `@` apart from its word by a word joiner, which nobody sees and which no chat skips.
    inside = _BROADCAST.sub("@\u2060", page).translate(_ESCAPES)
    part = f" ({number}/{of})" if of > 1 else ""
    return f"*{notice.type}*, {notice.priority}{part}\n```\n{inside}\n```"
