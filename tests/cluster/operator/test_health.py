"""The probes say what the parts say."""

from __future__ import annotations

import httpx2

from inquest.operator.health import Line, health_app, metrics_app, serving


async def answer(port: int, path: str) -> tuple[int, str]:
    async with httpx2.AsyncClient() as client:
        found = await client.get(f"http://127.0.0.1:{port}{path}")
        return found.status_code, found.text


async def test_what_is_required_fails_the_probe_and_the_rest_only_shows() -> None:
    faults = {"watch": "", "policy": "opa does not answer"}
    app = health_app(
        alive=[Line("event loop", lambda: "")],
        ready=[Line("watch", lambda: faults["watch"]), Line("policy", lambda: faults["policy"], required=False)],
    )
    async with serving(app, "127.0.0.1", 0) as port:
        assert await answer(port, "/healthz") == (200, "ok\n")
        assert await answer(port, "/readyz") == (200, "ok\n")
        verbose = "[+] watch\n[~] policy: opa does not answer\nok\n"
        assert await answer(port, "/readyz?verbose") == (200, verbose)

        faults["watch"] = "the first list is not through yet"
        assert await answer(port, "/readyz") == (503, "[-] watch: the first list is not through yet\nfailed\n")
        assert (await answer(port, "/metrics"))[0] == 404


async def test_metrics_are_served_with_their_first_values() -> None:
    async with serving(metrics_app(), "127.0.0.1", 0) as port:
        status, text = await answer(port, "/metrics")

    assert status == 200
    assert 'inquest_watch_restarts_total{cause="silent"}' in text
    assert "inquest_fenced_total" in text
    assert "process_resident_memory_bytes" in text
