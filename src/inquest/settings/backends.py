"""Settings of the systems beside the API server."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, model_validator

from inquest.api.installation import DATASTORAGE_SERVICE
from inquest.settings.base import PositiveSpan, PublicUrl, SettingsGroup, Span, check_listener, check_public, check_url


class DataStorageServerSettings(SettingsGroup):
    """`inquest datastorage serve` only; health and metrics are where `server` says."""

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """The API; 0 takes a free port."""
    authentication: Literal["kubernetes", "none"] = "kubernetes"
    """`kubernetes`: a token for each request, reviewed by the API server; `none`: on a loopback address only."""
    service: str = DATASTORAGE_SERVICE
    """Name of the Service on which callers need the verb `create`."""
    tls_certificate: Path | None = None
    """PEM file of the certificate chain; unset: plain HTTP."""
    tls_key: Path | None = None
    """PEM file of its key."""
    stop_timeout: Annotated[Span, Field(le=timedelta(minutes=5))] = timedelta(seconds=30)
    """What requests in flight may still take at the end."""

    @model_validator(mode="after")
    def _guarded(self) -> Self:
        check_listener(self.host, self.authentication, tls_certificate=self.tls_certificate, tls_key=self.tls_key)
        return self


class DataStorageSettings(SettingsGroup):
    """Catalogue, history and audit."""

    mode: Literal["embedded", "external"] = "embedded"
    """`embedded`: in process on `database`; `external`: the service at `url`."""
    url: PublicUrl = ""
    """Base URL of an external service."""
    profile: Literal["native", "kubernaut-1.4"] = "native"
    """Whose wire an external service speaks: this product's own, or that of an existing Kubernaut 1.4."""
    token_file: Path | None = None
    """File with a bearer token for an external service; read before every request."""
    ca_bundle: Path | None = None
    """PEM file with the only authorities that an external service is believed with; unset: those of the system."""
    database: str = "sqlite:///inquest.db"
    """SQLAlchemy URL of the bundled service's database, embedded or served: `sqlite:///file`, `postgresql://…`."""
    server: DataStorageServerSettings = DataStorageServerSettings()

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if self.url:
            check_public("url", self.url)
        return self

    def secrets(self) -> tuple[str, ...]:
        """The password in the database's URL."""
        if "@" not in self.database:
            return ()
        from sqlalchemy import make_url  # imported late: whoever has no database needs none of it

        return tuple(filter(None, (make_url(self.database).password,)))


class _StackSettings(SettingsGroup):
    url: PublicUrl = ""
    """Base URL; empty: it is not asked."""
    token_file: Path | None = None
    """File with a bearer token; read before every request."""
    ca_bundle: Path | None = None
    """PEM file with the only authorities that it is believed with; unset: those of the system."""
    proxy: SecretStr = SecretStr("")
    """`http://[user:password@]host:port`; unset: as `HTTPS_PROXY` and `NO_PROXY` say."""
    tenant: str = ""
    """Sent as `X-Scope-OrgID`, where the server has tenants."""
    connect_timeout: PositiveSpan = timedelta(seconds=5)
    """Time to connect."""
    timeout: PositiveSpan = timedelta(seconds=30)
    """Whole time of one query; the server is asked for no more either."""
    namespace_label: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] = "namespace"
    """Label that holds the namespace of a series, stream or alert."""

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if self.url:
            check_public("url", self.url)
        if proxy := self.proxy.get_secret_value():
            check_url("proxy", proxy)
        return self

    def secrets(self) -> tuple[str, ...]:
        """The proxy's password."""
        return tuple(filter(None, (urlsplit(self.proxy.get_secret_value()).password,)))


class _QueriedSettings(_StackSettings):
    confine: bool = True
    """Every query reads the namespaces of its case only; false: whatever the server shows this account."""


class PrometheusSettings(_QueriedSettings):
    """Metrics for the model's tools and for verification, off by default; what speaks Prometheus' HTTP API."""

    shared_metrics: tuple[str, ...] = ("kube_node_*", "machine_*", "node_*")
    """Metrics by glob that belong to no namespace and are read whole; never those with a colon in their name."""


class LokiSettings(_QueriedSettings):
    """Logs for the model's tools beside those of the kubelet, off by default."""


class AlertmanagerSettings(_StackSettings):
    """Whether an alert still fires after a run, off by default; only alerts of the target's namespace are read."""


class KubernetesSettings(SettingsGroup):
    """How the API server is reached."""

    kubeconfig: Path | None = None
    """Kubeconfig file; empty: the pod's service account. Set where the operator runs outside the cluster."""
    namespace: str = "inquest-system"
    """The operator's own namespace: journal, Leases, Signals. The chart sets it."""
    service_account: str = "inquest"
    """The operator's own account, as the admission policies name it. The chart sets it."""
    namespaces: tuple[str, ...] = ()
    """Namespaces that it looks after, with no right in others than its own and that of the Jobs; empty: all. Name them
    where a team installs Inquest for itself.
    """

    @property
    def watched(self) -> tuple[str, ...]:
        """Where objects of Inquest's own kinds are seen; empty: everywhere."""
        return tuple(dict.fromkeys((self.namespace, *self.namespaces))) if self.namespaces else ()
