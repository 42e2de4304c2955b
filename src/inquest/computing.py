"""One thread for what only computes: rules, redaction, folding a journal.

Python runs one thread at a time. Several that compute are no faster than one, and the event loop has to wait for each
of them whenever it comes back from the network.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_COMPUTING: Final = ThreadPoolExecutor(1, thread_name_prefix="computing")


async def compute(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What `work` returns or raises, in its turn; what waits for a file or a network belongs in `asyncio.to_thread`."""
    context = contextvars.copy_context()
    call = partial(context.run, work, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_COMPUTING, call)
