"""Text of a cluster as a receiver may show it: data that mentions nobody, links to nothing and draws nothing.

Slack reads `<`, `>` and `&` as its own wherever they stand; everything else that a chat reads as markup has no meaning
inside a code block, out of which only backticks lead. `@channel` and its like notify in Mattermost wherever they stand.
"""

from __future__ import annotations

import re
from typing import Final

from inquest.ports import Notice
from inquest.story.framing import shown, visible

MOST_CHAT: Final = 3000
"""Characters of a section (Slack's own bound)."""
MOST_TITLE: Final = 200
MOST_BODY: Final = 20_000

_BROADCAST: Final = re.compile(r"@(?=(?:all|channel|everyone|here)\b)", re.IGNORECASE)
_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "'"})
_CUT: Final = "\n… (cut)"


def title(notice: Notice) -> str:
    """What happened, on one line."""
    return shown(" ".join(notice.title.split()), MOST_TITLE)


def text(notice: Notice, most: int = MOST_BODY) -> str:
    """What happened or is asked, then the particulars; a text that was cut says so."""
    whole = visible(f"{notice.title}\n{notice.body}")
    return whole if len(whole) <= most else f"{shown(whole, most - len(_CUT))}{_CUT}"


def mrkdwn(notice: Notice) -> str:
    """The same for a chat: our words, then the cluster's in a code block."""
    # `@` apart from its word by a word joiner, which nobody sees and which no chat skips.
    inside = _BROADCAST.sub("@\u2060", text(notice, MOST_CHAT)).translate(_ESCAPES)
    return f"*{notice.type}*, {notice.priority}\n```\n{inside}\n```"
