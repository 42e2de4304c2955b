"""How the API server is reached and as whom: read from a kubeconfig, from a pod's mounts, or given.

A login is a plain value, so that the client and the watcher, which do not share a library, share the account.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config import load_kube_config
from kubernetes.aio.config.config_exception import ConfigException

from inquest.errors import Misconfigured

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True)
class Login:
    """An address and an account; a token file is read at each use, because the kubelet rotates it."""

    server: str
    ca_file: str = ""
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    cert_file: str = ""
    key_file: str = field(default="", repr=False)

    def bearer(self) -> str:
        """The token as of now, empty when a certificate speaks for us."""
        return self.token_file.read_text().strip() if self.token_file else self.token


Source = Callable[[], Awaitable[Login]]
"""Reads the login anew; called at start and once after each 401."""


def given(login: Login) -> Source:
    """A source that always gives this login."""

    async def read() -> Login:
        return login

    return read


def from_kubeconfig(path: Path, context: str | None = None) -> Source:
    """The login of a kubeconfig file, credential plugins included."""

    async def read() -> Login:
        configuration = Configuration()
        try:
            await load_kube_config(  # type: ignore[no-untyped-call]
                str(path), context, client_configuration=configuration, persist_config=False
            )
        except (ConfigException, OSError) as error:
            raise Misconfigured(f"kubeconfig {path.name} cannot be used: {error}") from error
        return _login_from_configuration(configuration)

    return read


def in_cluster(folder: Path = SERVICE_ACCOUNT) -> Source:
    """The login of the pod's own service account."""

    async def read() -> Login:
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "")
        if not host or not port:
            raise Misconfigured("no kubeconfig is set and this process does not run in a pod")
        address = f"[{host}]" if ":" in host else host
        return Login(f"https://{address}:{port}", str(folder / "ca.crt"), token_file=folder / "token")

    return read


def _login_from_configuration(configuration: Configuration) -> Login:
    header = str(configuration.api_key.get("BearerToken") or "")
    return Login(
        server=configuration.host,
        ca_file=configuration.ssl_ca_cert or "",
        token=header.split(" ", 1)[-1],
        cert_file=configuration.cert_file or "",
        key_file=configuration.key_file or "",
    )
