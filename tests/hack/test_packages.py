"""Packages of the system: what one run fetches, another run does not delete."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hack import packages

APT = """#!/bin/sh
echo begin >> {log}
sleep 0.2
echo end >> {log}
"""


def test_two_runs_never_use_the_package_manager_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, apt = tmp_path / "log", tmp_path / "bin" / "apt-get"
    apt.parent.mkdir()
    apt.write_text(APT.format(log=log))
    apt.chmod(0o755)
    path = f"{apt.parent}:/usr/bin:/bin"
    monkeypatch.setenv("PATH", path)
    monkeypatch.setenv("INQUEST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(packages, "SYSTEM_PATH", path)
    monkeypatch.setattr(packages, "require_root", lambda: None)

    with ThreadPoolExecutor(2) as pool:
        installing = pool.submit(packages.ensure_programs, {"no-such-program": "no-such-package"})
        time.sleep(0.1)
        fetching = pool.submit(packages._download, "another", tmp_path)
        missing, _ = installing.result(timeout=60), fetching.result(timeout=60)

    assert missing == ["no-such-package"]
    assert log.read_text().split() == ["begin", "end"] * 3


def test_a_machine_whose_systemd_does_not_run_says_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    systemctl = tmp_path / "systemctl"
    systemctl.write_text("#!/bin/sh\necho 'Failed to connect to bus: Host is down' | tee /dev/stderr\nexit 1\n")
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    assert not packages._service_runs()
    assert capfd.readouterr() == ("", "")
