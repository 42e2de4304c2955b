"""Settings of the model: endpoints, prices, budgets."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, model_validator

from inquest.settings.base import PositiveSpan, SettingsGroup, Span, check_url, secret_in


class PriceSettings(SettingsGroup):
    """What tokens cost, in any one currency, for a million of them."""

    prompt: Annotated[Decimal, Field(ge=0)]
    """Prompt tokens."""
    cached: Annotated[Decimal, Field(ge=0)] | None = None
    """Prompt tokens that the provider had cached; unset: as others."""
    completion: Annotated[Decimal, Field(ge=0)]
    """Completion tokens, reasoning included."""


class EndpointBase(SettingsGroup):
    endpoint: str = ""
    """Base URL of the endpoint."""
    name: str = ""
    """Name of the model; with `azure` the name of the deployment."""
    azure_api_version: str = "2024-10-21"
    """Version of Azure's API; read with `azure` only."""
    api_key: SecretStr = SecretStr("")
    """Key of the endpoint; better given as `api_key_file`."""
    api_key_file: Path | None = None
    """File that holds the key, as a mounted Secret does; read before every call."""
    ca_bundle: Path | None = None
    """PEM file with the only authorities that the endpoint is believed with; unset: those of the system."""
    proxy: SecretStr = SecretStr("")
    """`http://[user:password@]host:port`; unset: as `HTTPS_PROXY` and `NO_PROXY` say."""
    context_window: Annotated[int, Field(ge=8000)] = 128_000
    """Tokens that the model can read."""
    price: PriceSettings | None = None
    """Currency units for a million tokens: `prompt`, `cached`, `completion`; unset: cost stays unknown."""
    max_concurrent: Annotated[int, Field(ge=1, le=1000)] = 50
    """Calls of this process at a time; fewer after the endpoint said that it has too much to do."""

    def key(self) -> str:
        """The key itself; never logged. Misconfigured where its file cannot be read."""
        if self.api_key_file is None:
            return self.api_key.get_secret_value()
        return secret_in(self.api_key_file, f"settings: model.api_key_file: {self.api_key_file}")

    def _check(self, *, azure: bool) -> None:
        check_url("endpoint", self.endpoint)
        if not self.name:
            raise ValueError("name: must be set")
        if azure and not self.azure_api_version:
            raise ValueError("azure_api_version: must be set")
        if proxy := self.proxy.get_secret_value():
            check_url("proxy", proxy)


class EndpointSettings(EndpointBase):
    """A further endpoint; it inherits nothing from the first."""

    provider: Literal["openai", "azure"] = "openai"
    """`openai`: any endpoint that speaks its chat protocol."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        self._check(azure=self.provider == "azure")
        return self


class ModelSettings(EndpointBase):
    """The model, or none: detectors and playbooks then give the diagnosis alone."""

    provider: Literal["none", "openai", "azure"] = "none"
    """`none` needs no key and no network; `openai`: any endpoint that speaks its chat protocol."""
    failover: tuple[EndpointSettings, ...] = ()
    """Further endpoints, asked in order when those before do not answer; each has the settings of the first."""
    temperature: float | None = None
    """Sent only when set."""
    timeout: PositiveSpan = timedelta(seconds=120)
    """Whole time of one call."""
    connect_timeout: PositiveSpan = timedelta(seconds=10)
    """Time to connect."""
    idle_timeout: PositiveSpan = timedelta(seconds=60)
    """Longest silence within an answer that has begun."""
    max_attempts: Annotated[int, Field(ge=1, le=10)] = 5
    """Attempts for each endpoint."""
    max_wait: Span = timedelta(seconds=60)
    """All waits between the attempts of one call; an endpoint that asks for more is passed over."""
    stream: bool = True
    """Ask for the answer in pieces, so that a dead connection is seen."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.provider != "none":
            self._check(azure=self.provider == "azure")
        return self

    @property
    def endpoints(self) -> tuple[ModelSettings | EndpointSettings, ...]:
        """All of them, in order; none with provider `none`."""
        return () if self.provider == "none" else (self, *self.failover)

    def secrets(self) -> tuple[str, ...]:
        """Every key and proxy password that this process holds; never logged."""
        found = [(one.key(), urlsplit(one.proxy.get_secret_value()).password or "") for one in self.endpoints]
        return tuple(text for pair in found for text in pair if text)


class BudgetSettings(SettingsGroup):
    """What all cases may cost together."""

    tokens_per_hour: Annotated[int, Field(ge=1000)] | None = None
    """Prompt and completion tokens of an hour; then cases begin without a model. Empty: no limit."""
