"""How the API server is reached and as whom: read from a kubeconfig, from a pod's mounts, or given.

A login is a plain value, so that the client and the watcher, which do not share a library, share the account.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config import load_kube_config
from kubernetes.aio.config.config_exception import ConfigException
from kubernetes.aio.config.kube_config import KubeConfigMerger

from inquest.adapters.yaml_fault import yaml_fault
from inquest.errors import Misconfigured

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True)
class Impersonation:
    """Whom an account acts as; it needs the right to."""

    user: str = ""
    groups: tuple[str, ...] = ()
    uid: str = ""

    def headers(self) -> Iterator[tuple[str, str]]:
        """As the API server reads them; a group each."""
        yield from (("Impersonate-User", one) for one in (self.user,) if one)
        yield from (("Impersonate-Group", one) for one in self.groups)
        yield from (("Impersonate-Uid", one) for one in (self.uid,) if one)


NOBODY_ELSE: Final = Impersonation()


@dataclass(frozen=True)
class Credentials:
    """An address and an account; a token file is read at each use, because the kubelet rotates it."""

    server: str
    ca_file: str = ""
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    cert_file: str = ""
    key_file: str = field(default="", repr=False)
    impersonate: Impersonation = NOBODY_ELSE
    server_name: str = ""
    """Name in the API server's certificate, where it is not that of the address."""
    is_unverified: bool = False
    """The certificate is not looked at, as the kubeconfig says."""
    proxy: str = ""
    """Address of an HTTP proxy; empty: the environment's, if any."""

    def bearer(self) -> str:
        """The token as of now, empty when a certificate speaks for us."""
        return self.token_file.read_text().strip() if self.token_file else self.token


Source = Callable[[], Awaitable[Credentials]]
"""Reads the login anew; called at start and once after each 401."""


def given_credentials(login: Credentials) -> Source:
    """A source that always gives this login."""

    async def read() -> Credentials:
        return login

    return read


def usual_kubeconfig() -> str:
    """The files that kubectl would take: those of `KUBECONFIG`, there or not, else that of the home folder, if any."""
    own = Path.home() / ".kube" / "config"
    return os.environ.get("KUBECONFIG") or (str(own) if own.is_file() else "")


def from_kubeconfig(
    files: Path | str, context: str | None = None, *, impersonate: Impersonation = NOBODY_ELSE
) -> Source:
    """The login of a kubeconfig file, or of several as `KUBECONFIG` lists them, credential plugins included."""

    async def read() -> Credentials:
        configuration = Configuration()
        with _named(files):
            config = _merged(files)
            _must_have_user(config, context)
            await load_kube_config(  # type: ignore[no-untyped-call]
                str(files), context, client_configuration=configuration, persist_config=False
            )
            wanted = impersonate if impersonate.user else _impersonated(config, context)
        header = str(configuration.api_key.get("BearerToken") or "")
        return Credentials(
            server=configuration.host,
            ca_file=configuration.ssl_ca_cert or "",
            token=header.split(" ", 1)[-1],
            cert_file=configuration.cert_file or "",
            key_file=configuration.key_file or "",
            impersonate=wanted,
            server_name=configuration.tls_server_name or "",
            is_unverified=not configuration.verify_ssl,
            proxy=configuration.proxy or "",
        )

    return read


def namespace_of(files: Path | str, context: str | None = None) -> str:
    """The namespace that a context of a kubeconfig names; empty where it names none."""
    with _named(files):
        return str(_context(_merged(files), context).safe_get("namespace") or "")


def in_cluster(folder: Path = SERVICE_ACCOUNT, *, impersonate: Impersonation = NOBODY_ELSE) -> Source:
    """The login of the pod's own service account."""

    async def read() -> Credentials:
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "")
        if not host or not port:
            raise Misconfigured(
                "no kubeconfig is set and this process does not run in a pod: "
                "name one by kubernetes.kubeconfig or INQUEST_KUBERNETES__KUBECONFIG"
            )
        address = f"[{host}]" if ":" in host else host
        server = f"https://{address}:{port}"
        return Credentials(server, str(folder / "ca.crt"), token_file=folder / "token", impersonate=impersonate)

    return read


# --- what people write into a kubeconfig --------------------------------------------------------------------


PARTS: Final = {"clusters": "cluster", "contexts": "context", "users": "user"}
"""Lists of a kubeconfig, and what each entry holds beside its name."""
_MISSING_KEY: Final = re.compile(r"Invalid kube-config file\. Expected key (\S+) in ")


@contextmanager
def _named(files: Path | str) -> Iterator[None]:
    """Whatever is wrong with what a person wrote, as one line that names the file as they did."""
    try:
        yield
    except yaml.YAMLError as error:
        line, why = yaml_fault(error)
        raise _unusable(files, f"line {line}: {why}" if line else why) from error
    except ConfigException as error:
        # The library names the place by all that stands there, a token too.
        missing = _MISSING_KEY.match(str(error))
        raise _unusable(files, f"{missing[1]} is missing" if missing else str(error)) from error
    except OSError as error:
        raise _unusable(files, error.strerror or str(error)) from error
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        # It meets these where a value is of another type than it takes for granted.
        raise _unusable(files, f"a value is not what it has to be: {error}") from error


def _unusable(files: Path | str, why: str) -> Misconfigured:
    return Misconfigured(f"kubeconfig {files}: {' '.join(why.split())}")


def _merged(files: Path | str) -> Any:
    there = [path for one in str(files).split(os.pathsep) if one and (path := Path(one).expanduser()).is_file()]
    if not there:
        raise ConfigException("there is no such file")
    for path in there:
        _must_have_form(yaml.safe_load(path.read_text(encoding="utf-8")))
    return KubeConfigMerger(str(files)).config  # type: ignore[no-untyped-call]


def _must_have_form(config: Any) -> None:
    """The lists of a kubeconfig and their entries; the library takes them for granted."""
    if not isinstance(config, dict):
        raise ConfigException("it holds no kubeconfig")
    for part, body in PARTS.items():
        entries = config.get(part) or []
        if not isinstance(entries, list):
            raise ConfigException(f"{part} is no list")
        for number, one in enumerate(entries):
            if not isinstance(one, dict) or not isinstance(one.get("name"), str):
                raise ConfigException(f"{part}[{number}] has no name")
            if not isinstance(one.get(body), dict):
                raise ConfigException(f"{part}[{number}] ({one['name']}) has no {body}")


def _context(config: Any, context: str | None) -> Any:
    names = [str(one["name"]) for one in config.safe_get("contexts") or ()]
    wanted = context or config.safe_get("current-context")
    if wanted not in names:
        what = f"there is no context {wanted}" if wanted else "it has no current context"
        raise ConfigException(f"{what}; there are {', '.join(names)}" if names else f"{what}, and no other")
    return config["contexts"].get_with_name(wanted)["context"]


def _must_have_user(config: Any, context: str | None) -> None:
    """To a server that asks who one is; the library does not look before it reads what the user has."""
    found = _context(config, context)
    cluster = config["clusters"].get_with_name(found["cluster"])["cluster"]
    name = found.safe_get("user")
    known = [one["name"] for one in config.safe_get("users") or ()]
    if str(cluster["server"]).startswith("https://") and name not in known:
        raise ConfigException(f"there is no user {name}" if name else "its context names no user")


def _impersonated(config: Any, context: str | None) -> Impersonation:
    """Whom the user of a context acts as; the client library does not look at it, and would act as itself."""
    name = _context(config, context).safe_get("user")
    found = config["users"].get_with_name(name, safe=True) if name and config.safe_get("users") else None
    user = (found.safe_get("user") or {}) if found is not None else {}
    if user.get("as-user-extra"):
        raise ConfigException(f"user {name}: as-user-extra is not supported")
    persona = Impersonation(
        str(user.get("as") or ""), tuple(map(str, user.get("as-groups") or ())), str(user.get("as-uid") or "")
    )
    if not persona.user and persona != NOBODY_ELSE:
        raise ConfigException(f"user {name}: as-groups and as-uid need a user to act as")
    return persona
