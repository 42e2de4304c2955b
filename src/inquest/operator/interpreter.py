"""How the interpreter serves an event loop beside a thread that computes."""

from __future__ import annotations

import gc
import sys
from typing import Final

SWITCH_SECONDS: Final = 0.001
"""How long the loop waits for the thread that computes, at each answer of the network; Python's 5 ms are longer than
most of them take."""
NEW_OBJECTS: Final = 10_000
"""After so many the youngest are searched for garbage. With Python's 700 that is an eighth of what a case costs."""


def prepare_interpreter() -> None:
    """Before the operator does anything."""
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])


def keep_what_is_loaded() -> None:
    """Once everything is loaded: it stays, and a full search for garbage goes through the rest alone."""
    gc.freeze()
