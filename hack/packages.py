"""Debian's packages for what is not built here: the container runtime, its network plugins and the image builder.

Only the real node and the images need them. A machine that already has the programs is left as it is. What tests alone
need is unpacked and not installed.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from hack import HackError
from hack.cache import cache_folder, locked
from hack.progress import building

INSTALL_SECONDS = 10 * 60
SYSTEM_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
NETWORK_PLUGINS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))

NODE_PROGRAMS: Mapping[str, str] = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "nft": "nftables",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "mount": "mount",
}
"""Program on the path, and the package that brings it."""

IMAGE_PROGRAMS: Mapping[str, str] = {"buildah": "buildah", "busybox": "busybox-static"}


def ensure_node_programs() -> None:
    """Have the container runtime and its plugins installed."""
    needs = ensure_programs(NODE_PROGRAMS, extra=[] if _plugin_folder() else ["containernetworking-plugins"])
    if needs and not _plugin_folder():
        raise HackError("the network plugins were installed, but ptp is in none of their folders")


def ensure_programs(programs: Mapping[str, str], extra: list[str] | None = None) -> list[str]:
    """Install the packages of the programs that are missing, and say which those were."""
    missing = _missing(programs, extra or [])
    if missing:
        require_root()
        with _one_at_a_time():
            _install(_missing(programs, extra or []))
    return missing


def _missing(programs: Mapping[str, str], extra: list[str]) -> list[str]:
    packages = {package for program, package in programs.items() if not shutil.which(program, path=SYSTEM_PATH)}
    return sorted(packages.union(extra))


def _one_at_a_time() -> AbstractContextManager[None]:
    """Fetching lists of packages may, as container images set it up, delete what another run has just fetched."""
    return locked(cache_folder() / ".apt.lock", seconds=INSTALL_SECONDS)


def require_root() -> None:
    """Say in one sentence that this cannot work, before anything is half done."""
    if os.geteuid() != 0:
        raise HackError("this needs root: a real node mounts, makes network interfaces and control groups")


def network_plugin_folder() -> Path:
    """Where this machine keeps its network plugins."""
    folder = _plugin_folder()
    if not folder:
        raise HackError(f"no network plugins in {' or '.join(map(str, NETWORK_PLUGINS))}")
    return folder


def _plugin_folder() -> Path | None:
    return next((folder for folder in NETWORK_PLUGINS if (folder / "ptp").exists()), None)


def _install(packages: list[str]) -> None:
    if not packages:
        return
    if not shutil.which("apt-get"):
        raise HackError(
            f"please install {' '.join(packages)}: they are fetched automatically on Debian and Ubuntu only"
        )
    was_running = _service_runs()
    with building(" ".join(packages)):
        _apt("update", "-qq")
        _apt("install", "-y", "-qq", "--no-install-recommends", *packages)
    if not was_running and _service_runs():
        subprocess.run(["systemctl", "disable", "--now", "containerd"], check=False, timeout=60, capture_output=True)


def _apt(*arguments: str, folder: Path | None = None) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "PATH": SYSTEM_PATH}
    command = ["apt-get", "-o", f"DPkg::Lock::Timeout={INSTALL_SECONDS}", *arguments]
    done = subprocess.run(
        command, env=environment, timeout=INSTALL_SECONDS, capture_output=True, text=True, check=False, cwd=folder
    )
    if done.returncode != 0:
        raise HackError(f"{' '.join(command)} failed:\n{done.stderr.strip()[-2000:]}")


def _service_runs() -> bool:
    """Whether the machine's own containerd service runs; ours needs none, and the package may start it."""
    if not shutil.which("systemctl"):
        return False
    # Where systemd is installed and does not run, as in a container, it complains on both outputs even with --quiet.
    asked = subprocess.run(
        ["systemctl", "is-active", "--quiet", "containerd"], check=False, timeout=60, capture_output=True
    )
    return asked.returncode == 0


# --- programs that are not installed --------------------------------------------------------------------------------


def unpacked(package: str, program: str) -> Path:
    """A program from the path, else out of its package, which is unpacked into the cache and not installed.

    So no service of the machine is started or set up, and no right is needed but to fetch.
    """
    found = shutil.which(program, path=SYSTEM_PATH)
    if found:
        return Path(found)
    home = cache_folder() / "packages" / package
    with locked(home.with_name(f".{package}.lock"), seconds=INSTALL_SECONDS):
        if not home.exists():
            _unpack(package, home)
    return home / "usr" / "bin" / program


def _unpack(package: str, home: Path) -> None:
    if not shutil.which("apt-get"):
        raise HackError(f"please install {package}: it is fetched automatically on Debian and Ubuntu only")
    with tempfile.TemporaryDirectory(dir=home.parent) as folder:
        _download(package, Path(folder))
        (archive,) = Path(folder).glob("*.deb")
        fresh = Path(folder) / "root"
        subprocess.run(["dpkg-deb", "-x", str(archive), str(fresh)], check=True, timeout=INSTALL_SECONDS)
        fresh.rename(home)


def _download(package: str, folder: Path) -> None:
    """With the lists of packages as they are; where they are old or missing, and we may, with new ones."""
    with _one_at_a_time():
        try:
            _apt("download", "-qq", package, folder=folder)
        except HackError:
            if os.geteuid() != 0:
                raise
            _apt("update", "-qq")
            _apt("download", "-qq", package, folder=folder)
