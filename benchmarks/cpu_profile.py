"""In which functions a process spends its CPU: one sample each few milliseconds of CPU time.

A timer of the kernel counts the CPU of all threads; its signal reaches the main thread. Where another thread had most
of the time since the last sample, the sample is that of `OTHERS`. Python hears of a signal between two of its own
steps: a long call into C counts for the first function of Python that runs during or after it.
"""

from __future__ import annotations

import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

SAMPLE_SECONDS: Final = 0.005
OTHERS: Final = "other threads"
PRODUCT: Final = "inquest/"
SHOWN: Final = 25
_LIBRARIES: Final = tuple(sorted(map(str, map(Path, sys.path)), key=len, reverse=True))


@dataclass
class CpuProfile:
    """Samples by function: in how many it ran itself, and in how many it was on the stack."""

    samples: int = 0
    own: Counter[str] = field(default_factory=Counter)
    within: Counter[str] = field(default_factory=Counter)
    _main: float = field(default=0.0, repr=False)
    _all: float = field(default=0.0, repr=False)

    def start(self) -> None:
        """Begin; only the main thread may."""
        self._main, self._all = time.thread_time(), time.process_time()
        signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, SAMPLE_SECONDS, SAMPLE_SECONDS)

    def stop(self) -> None:
        """End; what was seen stays."""
        signal.setitimer(signal.ITIMER_PROF, 0)

    def data(self) -> dict[str, Any]:
        """As JSON takes it."""
        return {"samples": self.samples, "own": dict(self.own), "within": dict(self.within)}

    def _sample(self, _: int, frame: FrameType | None) -> None:
        main, whole = time.thread_time(), time.process_time()
        is_main = 2 * (main - self._main) >= whole - self._all
        self._main, self._all = main, whole
        stack = list(_functions(frame)) if is_main else [OTHERS]
        self.samples += 1
        self.own.update(stack[:1])
        self.within.update(set(stack))


def _functions(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        path = frame.f_code.co_filename
        folder = next((one for one in _LIBRARIES if path.startswith(one + "/")), "")
        yield f"{path.removeprefix(folder).lstrip('/')} {frame.f_code.co_qualname}"
        frame = frame.f_back


def lines(profile: Mapping[str, Any]) -> Iterator[str]:
    """The table of a profile: what ran itself, then what of the product was on the stack."""
    samples = max(1, profile["samples"])
    ours = {name: count for name, count in profile["within"].items() if name.startswith(PRODUCT)}
    for title, counts in (("the function itself", profile["own"]), ("with all that it calls", ours)):
        yield f"    CPU by function, {title}, of {samples} samples"
        most = sorted(counts.items(), key=lambda pair: -pair[1])[:SHOWN]
        yield from (f"      {100 * count / samples:5.1f} %  {name}" for name, count in most)
