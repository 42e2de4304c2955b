"""How fast the redactor is, beside the plainest work on the same text (reliability, section 15.1).

`measure()` gives one row for each text; `growth()` says how much longer texts made to slow it down take when they are
four times as long: about four where the work is linear. `pauses()` says how long the event loop waits for long ones.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from inquest.computing import compute
from inquest.core.redaction.redactor import Redactor
from inquest.operator.interpreter import keep_what_is_loaded, prepare_interpreter

SIZES: Final = (1_000, 100_000, 10_000_000)
RUNS: Final = {1_000: 200, 100_000: 15, 10_000_000: 1}
HOSTILE_SIZE: Final = 100_000
LONGEST: Final = 10_000_000
"""Characters: more than the logs of a pod, a list of objects or a notice can have."""
_BASELINE: Final = re.compile(r"[0-9]+")

HOSTILE: Final = (
    *("- --password\n", "<password>\n ", 'password: [ "', "password=''", '"--password", '),
    *("a", " ", "=", "%", ":", "-", "\\", '"', "{", "[", "<", "\n", "aA1", "A/", "%41", "password", "password="),
    *(
        'password="',
        "password:\n ",
        "password: \\",
        "authorization: ",
        'token="',
        "token='\\",
        "name: token\n",
        "&token=",
    ),
    *("://a:", "://:", "://a:@", "a:b@tcp(", ":thin:a/", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"),
    *("-----BEGIN ", "mysql -p", "mysql ", "curl -u ", "curl ", " - http", "$6$", "eyJ", "sk-", "bearer ", "basic "),
    *('"kind":"Secret","data":{', '{"kind":"Secret"', "kind: Secret\n", "stringData:\n", "env:\n- name: A_TOKEN\n"),
    *(
        "value: x\n",
        "a: |\n",
        "login a password ",
        "cGFzc3dvcmQ9aHVudGVyMg==",
        "cGFzc3dvcmQ9aHVudGVyMg==\n",
        "\u200bpass",
    ),
    *('{"a":"{\\"b\\":', "<password>", "export token=", '"value', "Q~", "hooks.slack.com/services/", "\u0130", "//:"),
)
"""Scraps that rules begin with, and of which none ends one."""
LONG: Final = (
    *("a", "0", " ", "-", "%41", "deadbeef", "\u200b", "\U0001f600", "пароль ", "cGFzc3dvcmQ9aHVudGVyMg=="),
    *("ALTER USER x PASSWORD 'abc';\n", "Authorization: Bearer abcdefghijklmnop\n", "password=hunter22\n"),
    *(
        '<a password="hunter22"/>\n',
        '{"level":"info","password":"abcdefgh"}\n',
        "kind: Secret\ndata:\n  a: aGFsbG8=\n---\n",
    ),
)
"""Scraps of which one call once took long, or many short ones did."""


@dataclass(frozen=True)
class Row:
    """One text: what was redacted, in how long, and how long the baseline took; times in milliseconds of CPU."""

    kind: str
    name: str
    characters: int
    milliseconds: float
    baseline: float

    @property
    def megabytes_per_second(self) -> float:
        return self.characters / 1000 / self.milliseconds

    @property
    def ratio(self) -> float:
        """To one pass of a plain pattern over the same text."""
        return self.milliseconds / self.baseline


def measure(sizes: tuple[int, ...] = SIZES) -> tuple[Row, ...]:
    """Logs and JSON of each size; the best of several runs, since everything else on a machine only adds."""
    redactor = Redactor(["the-key-of-a-model-endpoint", "the-token-of-an-account"])
    texts = ((kind, f"{kind}, {size:,}", make(size)) for kind, make in KINDS.items() for size in sizes)
    return tuple(_row(kind, name, text, redactor) for kind, name, text in texts)


def growth(size: int = HOSTILE_SIZE) -> tuple[tuple[str, float, float], ...]:
    """For each hostile scrap: seconds for a megabyte, and the ratio of the times of four sizes and one."""
    redactor = Redactor(["the-key-of-a-model-endpoint"])
    return tuple(_growth(scrap, size, redactor) for scrap in HOSTILE)


def _growth(scrap: str, size: int, redactor: Redactor) -> tuple[str, float, float]:
    short, long = (_seconds(lambda text=text: redactor.text(text), 2) for text in _repeated(scrap, size))  # type: ignore[misc]
    return scrap, long / (4 * size) * 1_000_000, long / short


def pauses(size: int = LONGEST) -> tuple[tuple[str, float], ...]:
    """For each of those scraps, and log and JSON: milliseconds that an event loop waits at most beside the redactor."""
    redactor = Redactor(["the-key-of-a-model-endpoint"])
    texts = {scrap: _repeated(scrap, size)[0] for scrap in LONG} | {kind: make(size) for kind, make in KINDS.items()}
    prepare_interpreter()
    gc.collect()
    keep_what_is_loaded()
    return tuple((name, 1000 * asyncio.run(_pause(redactor, text))) for name, text in texts.items())


async def _pause(redactor: Redactor, text: str) -> float:
    work, longest = asyncio.create_task(compute(redactor.text, text)), 0.0
    while not work.done():
        begun = time.perf_counter()
        await asyncio.sleep(_TICK)
        longest = max(longest, time.perf_counter() - begun - _TICK)
    return longest


_TICK: Final = 0.001


def _repeated(scrap: str, size: int) -> tuple[str, str]:
    return scrap * (size // len(scrap)), scrap * (4 * size // len(scrap))


def _row(kind: str, name: str, text: str, redactor: Redactor) -> Row:
    runs = RUNS.get(len(text), 3)
    mine = _seconds(lambda: redactor.text(text), runs)
    return Row(kind, name, len(text), mine * 1000, _seconds(lambda: _BASELINE.sub("#", text), runs) * 1000)


def _seconds(work: Callable[[], object], runs: int) -> float:
    return min(_timed(work) for _ in range(runs))


def _timed(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return max(time.process_time() - begun, 1e-9)


# --- texts -----------------------------------------------------------------------------------------------------


def log(size: int) -> str:
    """Lines as services and the kubelet write them, without a secret."""
    source = random.Random(1)
    return _cut((f"{_line(source)}\n" for _ in iter(int, 1)), size)


def _line(source: random.Random) -> str:
    number, second = source.randrange(10**6), source.randrange(60)
    return source.choice(
        (
            f"2026-05-04T11:59:{second:02d}.{number:06d}Z INFO payments.api id={source.getrandbits(128):032x} "
            f"path=/v1/orders/{number} status=200 took={number % 900}ms",
            f"2026/05/04 11:59:{second:02d} [error] 7#0: *{number} connect() failed (111: Connection refused) while "
            'connecting to upstream, client: 10.0.3.7, server: _, request: "GET /healthz HTTP/1.1"',
            f"\tat com.example.payments.internal.Handler.run(Handler.java:{number % 900})",
            f'I0504 11:59:{second:02d}.{number:06d} 1 controller.go:{number % 900}] "Syncing" key="shop/api-{number}"',
            json.dumps({"level": "info", "ts": number, "msg": "handled", "pod": f"api-{number:x}-x2x9z", "tokens": 7}),
        )
    )


def objects(size: int) -> str:
    """A list of pods as the API server gives it, indented, with a password in every one."""
    source, pods, length = random.Random(2), [], 0
    while length < size:
        pods.append(_pod(source))
        length += len(json.dumps(pods[-1], indent=2))
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}, indent=2)


def _pod(source: random.Random) -> dict[str, object]:
    name = f"payments-api-{source.getrandbits(36):09x}-x2x9z"
    digest = f"sha256:{source.getrandbits(256):064x}"
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10}
    password = f"x{source.randrange(10**9)}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"{source.getrandbits(32):08x}-91a1-4c44-8d55-{source.getrandbits(48):012x}",
            "labels": {"app.kubernetes.io/name": "payments-api", "pod-template-hash": "7d9f8b6c5d"},
            "annotations": {"checksum/config": f"{source.getrandbits(256):064x}", "prometheus.io/scrape": "true"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name[:-6], "controller": True}],
        },
        "spec": {
            "containers": [
                {
                    "name": "app",
                    "image": f"registry.example.com/shop/payments-api@{digest}",
                    "args": ["--port=8080", "--config=/etc/payments/config.yaml"],
                    "env": [{"name": "DB_PASSWORD", "value": password}, {"name": "MODE", "value": "fast"}],
                    "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m"}},
                    "livenessProbe": probe,
                    "readinessProbe": probe,
                    "volumeMounts": [{"name": "config", "mountPath": "/etc/payments", "readOnly": True}],
                }
            ],
            "volumes": [{"name": "config", "secret": {"secretName": "payments-config", "defaultMode": 420}}],
            "nodeName": "ip-10-0-1-7.eu-west-1.compute.internal",
            "serviceAccountName": "payments-api",
        },
        "status": {
            "phase": "Running",
            "podIP": "10.0.3.7",
            "containerStatuses": [{"name": "app", "ready": True, "restartCount": 3, "containerID": digest}],
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-05-04T11:59:00Z"}],
        },
    }


KINDS: Final = {"log": log, "JSON": objects}


def _cut(lines: Iterator[str], size: int) -> str:
    parts, length = [], 0
    for line in lines:
        parts.append(line)
        length += len(line)
        if length >= size:
            break
    return "".join(parts)[:size]


def main() -> None:
    """Print the three tables."""
    print(f"{'text':<20}{'ms':>10}{'MB/s':>8}{'ratio':>8}")
    for row in measure():
        print(f"{row.name:<20}{row.milliseconds:>10.2f}{row.megabytes_per_second:>8.1f}{row.ratio:>7.1f}x")
    print(f"\n{'hostile scrap':<32}{'s/MB':>8}{'4x':>8}")
    for scrap, seconds, ratio in growth():
        print(f"{scrap!r:<32}{seconds:>8.2f}{ratio:>7.1f}x")
    print(f"\n{'the loop waits for':<32}{'ms':>8}")
    for scrap, milliseconds in pauses():
        print(f"{scrap!r:<32}{milliseconds:>8.1f}")


if __name__ == "__main__":
    main()
