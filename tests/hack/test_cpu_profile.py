"""A profile names the function that spent the CPU, and the thread where it was not the main one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from benchmarks.cpu_profile import OTHERS, CpuProfile, lines

CPU_SECONDS = 0.5


def spin() -> None:
    end = time.thread_time() + CPU_SECONDS
    while time.thread_time() < end:
        pass


def call_spin() -> None:
    spin()


def profiled(work: Callable[[], None]) -> CpuProfile:
    profile = CpuProfile()
    profile.start()
    try:
        work()
    finally:
        profile.stop()
    return profile


def test_the_function_that_spends_the_cpu_comes_first_and_its_caller_holds_it() -> None:
    profile = profiled(call_spin)

    (name, count), *_ = profile.own.most_common()
    assert name.endswith("test_cpu_profile.py spin")
    assert count > profile.samples / 2
    caller = next(name for name in profile.within if name.endswith("test_cpu_profile.py call_spin"))
    assert profile.within[caller] >= count
    assert profile.own[caller] == 0


def test_what_another_thread_spends_is_not_the_main_threads() -> None:
    def in_a_thread() -> None:
        thread = threading.Thread(target=spin)
        thread.start()
        thread.join()

    profile = profiled(in_a_thread)

    assert profile.own[OTHERS] > profile.samples / 2


def test_shares_are_of_all_samples() -> None:
    own, within = {"inquest/a.py f": 1, "json/decoder.py decode": 3}, {"inquest/a.py f": 4, "asyncio/events.py run": 4}

    told = list(lines({"samples": 4, "own": own, "within": within}))

    assert told[1:3] == ["       75.0 %  json/decoder.py decode", "       25.0 %  inquest/a.py f"]
    assert told[4:] == ["      100.0 %  inquest/a.py f"]
