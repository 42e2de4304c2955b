"""One cluster's workbench: its files, binaries, keys and processes, handed to every part that starts something."""

import base64
import http.client
import json
import ssl
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml

from hack import HackError
from hack.cache import hash_of
from hack.cluster.certificates import Authority, Subject
from hack.cluster.process import POLL_SECONDS, ProcessTable
from hack.cluster.state import Identity, write_atomically

LOOPBACK = "127.0.0.1"
ADMIN = Subject("admin", "admin", "system:masters")
REQUEST_SECONDS = 5
KUBECTL_SECONDS = 180


@dataclass(frozen=True)
class Site:
    """Everything that the parts of one cluster share."""

    folder: Path
    identity: Identity
    bin: Path

    @cached_property
    def authority(self) -> Authority:
        """Who signs this cluster's certificates."""
        return Authority(self.folder / "certificates")

    @cached_property
    def processes(self) -> ProcessTable:
        """This cluster's programs."""
        return ProcessTable(self.folder)

    @property
    def server(self) -> str:
        """The API server as this machine reaches it."""
        return f"https://{LOOPBACK}:{self.identity.ports['kube-apiserver']}"

    @property
    def server_for_node(self) -> str:
        """The API server as the node reaches it: behind its walls the loopback is another one."""
        return f"https://{self.identity.host_address}:{self.identity.ports['kube-apiserver']}"

    def kubeconfig(self, user: Subject, server: str | None = None) -> Path:
        """That user's kubeconfig, complete in itself so that it can be copied."""
        path = self.folder / "kubeconfigs" / f"{user.file}.yaml"
        text = yaml.safe_dump(self._kubeconfig(user, server or self.server), sort_keys=False)
        write_atomically(path, text)
        return path

    def _kubeconfig(self, user: Subject, server: str) -> dict[str, object]:
        certificate, key = self.authority.issue(user)
        name = f"inquest-{self.identity.name}"
        cluster = {"server": server, "certificate-authority-data": _base64(self.authority.certificate)}
        credentials = {"client-certificate-data": _base64(certificate), "client-key-data": _base64(key)}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": user.common_name, "user": credentials}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": user.common_name}}],
            "current-context": name,
        }

    def answers(self, port_name: str, path: str) -> bool:
        """Whether that program of ours answers a GET of that path with 200, asked as the admin."""
        return self.answers_at(LOOPBACK, self.identity.ports[port_name], path)

    def answers_at(self, host: str, port: int, path: str) -> bool:
        """The same for a program that listens elsewhere, as the kubelet does."""
        certificate, key = self.authority.issue(ADMIN)
        trust = ssl.create_default_context(cafile=str(self.authority.certificate))
        trust.load_cert_chain(certificate, key)
        connection = http.client.HTTPSConnection(host, port, timeout=REQUEST_SECONDS, context=trust)
        return _is_ok(connection, path)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run our own kubectl as the admin and return what it printed."""
        places = [f"--kubeconfig={self.kubeconfig(ADMIN)}", f"--cache-dir={self.folder / 'kubectl-cache'}"]
        command = [str(self.bin / "kubectl"), *places, *arguments]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=KUBECTL_SECONDS, check=False
        )
        if done.returncode != 0:
            raise HackError(f"{' '.join(command)} failed:\n{done.stderr.strip()}")
        return done.stdout

    def apply(self, *objects: dict[str, object], proof: str) -> None:
        """Make these objects so, unless they were and the path that proves it still answers."""
        manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        applied = self.folder / "applied" / hash_of([manifest.encode()])
        if applied.exists() and self.answers("kube-apiserver", proof):
            return
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=manifest)
        write_atomically(applied, manifest)

    def wait_for(self, path: str, what: str, seconds: float) -> None:
        """Wait until the API server answers that path with 200."""
        deadline = time.monotonic() + seconds
        while not self.answers("kube-apiserver", path):
            if time.monotonic() > deadline:
                raise HackError(f"{what} is not there after {seconds:.0f} s; logs are in {self.folder / 'logs'}")
            time.sleep(POLL_SECONDS)


def run(*command: str | Path, seconds: float = 30, check: bool = True) -> str:
    """Run a system command, bounded, and say what it said when it fails."""
    words: Sequence[str] = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False)
    if check and done.returncode != 0:
        raise HackError(f"{' '.join(words)} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def plain_answer(port: int, path: str) -> bool:
    """Whether a program on the loopback answers a GET over plain HTTP with 200."""
    return _is_ok(http.client.HTTPConnection(LOOPBACK, port, timeout=REQUEST_SECONDS), path)


def _is_ok(connection: http.client.HTTPConnection, path: str) -> bool:
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
