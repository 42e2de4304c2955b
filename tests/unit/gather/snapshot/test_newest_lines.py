"""The end of a log is what is kept of it: the kubelet's own bound of bytes keeps the beginning."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from inquest.errors import NotFound, NotKept
from inquest.gather.snapshot.newest_lines import newest_lines


@dataclass
class Kubelet:
    """Takes the newest lines, and of them the first bytes, as a real one does."""

    lines: list[str]
    asked: list[int] = field(default_factory=list)

    async def logs(self, *_: str, tail_lines: int, limit_bytes: int, **__: Any) -> str:
        self.asked.append(tail_lines)
        text = "".join(f"{line}\n" for line in self.lines[-tail_lines:])
        return text.encode()[:limit_bytes].decode("utf-8", "ignore")


async def read(kubelet: Any, lines: int = 200, size: int = 4_000) -> tuple[str, bool]:
    return await newest_lines(kubelet, "shop", "api-1", "app", previous=True, tail_lines=lines, limit_bytes=size)


async def test_long_lines_do_not_hide_the_last_one() -> None:
    kubelet = Kubelet([f"{number} {'x' * 100}" for number in range(200)] + ["panic: out of order"])

    text, cut = await read(kubelet)

    assert text.splitlines()[-1] == "panic: out of order"
    assert cut
    assert kubelet.asked == [200, 50, 12]


@pytest.mark.parametrize(("lines", "cut"), [(199, False), (200, True)])
async def test_a_log_within_the_bounds_is_read_once(lines: int, cut: bool) -> None:
    kubelet = Kubelet(["ok"] * lines)

    assert await read(kubelet) == ("ok\n" * lines, cut)
    assert kubelet.asked == [200]


async def test_of_one_line_beyond_the_bound_there_is_the_beginning() -> None:
    kubelet = Kubelet(["small", "y" * 9_000])

    text, cut = await read(kubelet)

    assert (text, cut) == ("y" * 4_000, True)
    assert kubelet.asked == [200, 50, 12, 3, 1]


async def test_a_log_that_is_not_there_is_said_to_be_missing() -> None:
    class Gone(Kubelet):
        async def logs(self, *_: str, tail_lines: int, limit_bytes: int, **__: Any) -> str:
            raise NotFound("previous terminated container not found")

    with pytest.raises(NotFound):
        await read(Gone([]))


async def test_what_the_kubelet_says_in_place_of_a_lost_log_is_no_log() -> None:
    said = "unable to retrieve container logs for containerd://48c7"

    with pytest.raises(NotKept, match=said):
        await read(Kubelet([said]))


async def test_a_program_that_quotes_the_kubelet_has_a_log() -> None:
    said = "unable to retrieve container logs for containerd://48c7"

    assert await read(Kubelet([said, "giving up"])) == (f"{said}\ngiving up\n", False)
