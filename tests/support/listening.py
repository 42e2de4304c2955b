"""Servers of Python's own library, for a test that needs somebody who listens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer
from threading import Thread


@contextmanager
def serving(server: HTTPServer) -> Iterator[HTTPServer]:
    """It answers until the end of the block, and its thread is gone then.

    One that is closed while its thread still serves asks the closed socket again and again, for as long as the
    process lives, and that costs a whole core.
    """
    thread = Thread(target=server.serve_forever)
    with server:
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
