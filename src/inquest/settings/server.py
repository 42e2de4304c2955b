"""Settings of what is served, and of telemetry."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from inquest.core.signals.classification import PROACTIVE_NAMES
from inquest.settings.base import LIVE, LOOPBACK, PositiveSpan, SettingsGroup, check_listener


class ServerSettings(SettingsGroup):
    """Health and metrics."""

    host: str = "127.0.0.1"
    """Address to listen on."""
    authentication: Literal["auto", "kubernetes", "none"] = "auto"
    """`kubernetes`: for metrics and verbose readiness a caller from elsewhere shows a token of an account that may get
    `/metrics`; `auto`: so, unless `host` is a loopback address."""
    health_port: Annotated[int, Field(ge=0, le=65535)] = 8081
    """`/healthz`, `/readyz`; 0 takes a free port."""
    metrics_port: Annotated[int, Field(ge=0, le=65535)] = 9090
    """`/metrics`; 0 takes a free port."""

    @property
    def asks_for_tokens(self) -> bool:
        """Whether a caller from elsewhere has to say who they are."""
        return self.authentication == "kubernetes" or (self.authentication == "auto" and self.host not in LOOPBACK)


SignalName = Annotated[str, Field(min_length=1, max_length=253)]
"""As the schema of a Signal has it."""


class EventSettings(SettingsGroup):
    """Warning events of the cluster, off by default."""

    enabled: bool = False
    """Watch them, and make Signals of those that are no noise and whose target is looked after."""
    quiet: Annotated[PositiveSpan, LIVE] = timedelta(minutes=30)
    """A Signal of an event that was not seen for so long, and whose target is healthy, is resolved."""


class IntakeSettings(SettingsGroup):
    """Webhooks that make Signals, of Alertmanager and of any other sender; off by default."""

    enabled: bool = False
    """Take Signals over HTTP at `/api/v1/signals` and `/api/v1/signals/alertmanager`."""
    host: str = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """0 takes a free port."""
    authentication: Literal["kubernetes", "token", "none"] = "kubernetes"
    """`kubernetes`: tokens reviewed by the API server; `token`: `token_file`; `none`: on a loopback address only."""
    token_file: Path | None = None
    """File with the bearer token of all senders; one that was replaced ends within a minute. With `token` only."""
    tls_certificate: Path | None = None
    """PEM file of the certificate chain; unset: plain HTTP."""
    tls_key: Path | None = None
    """PEM file of its key."""
    notices_per_minute: Annotated[int, Field(ge=1, le=100_000)] = 300
    """Alerts and specs taken in a minute, after a burst of at least 500; more get 429 and a time."""
    events: EventSettings = EventSettings()
    proactive: Annotated[Mapping[SignalName, SignalName], LIVE] = {}
    """Names of predictions and the fault that each foresees, exact; added to the built-in list."""

    @model_validator(mode="after")
    def _guarded(self) -> Self:
        check_listener(self.host, self.authentication, tls_certificate=self.tls_certificate, tls_key=self.tls_key)
        if (self.authentication == "token") != (self.token_file is not None):
            raise ValueError("token_file and authentication: token belong together")
        return self

    @property
    def predictions(self) -> Mapping[str, str]:
        """The built-in list and what was added."""
        return {**PROACTIVE_NAMES, **self.proactive}


class EvidenceSettings(SettingsGroup):
    """Cases for readers by an aggregated API of the API server; off by default, on in the chart."""

    enabled: bool = False
    """Serve `evidence.inquest.dev`, for the API server alone; an APIService must point to it."""
    host: str = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8443
    """0 takes a free port."""
    tls_certificate: Path | None = None
    """PEM file of the certificate chain; it must hold the name of the Service, and is read again when it changes."""
    tls_key: Path | None = None
    """PEM file of its key."""

    @model_validator(mode="after")
    def _certified(self) -> Self:
        if self.enabled and (self.tls_certificate is None or self.tls_key is None):
            raise ValueError("the API server speaks TLS only: name tls_certificate and tls_key")
        return self


class TelemetrySettings(SettingsGroup):
    """Traces, off by default; the extra `otlp` has to be installed."""

    traces: bool = False
    """Send spans by OTLP over HTTP."""
    endpoint: str = ""
    """Base URL of the receiver, `http://collector:4318`; empty: what OTEL_EXPORTER_OTLP_ENDPOINT says."""
    content: bool = False
    """Put prompts, replies, arguments and results into the spans, redacted."""
