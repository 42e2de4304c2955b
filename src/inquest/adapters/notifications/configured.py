"""From the settings to receivers with open connections."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack

import httpx2

from inquest.adapters.http import authorities_of
from inquest.adapters.notifications.channels import Hook, Receiver, SlackReceiver, WebhookReceiver
from inquest.adapters.notifications.routes import Route, RoutedReceiver, route_receiver
from inquest.settings.base import opaque_parts
from inquest.settings.notifications import NotificationSettings, ReceiverSettings


async def receivers_of(
    chosen: NotificationSettings, learn: Callable[[str], None], stack: AsyncExitStack
) -> tuple[RoutedReceiver, ...]:
    """Everybody who is told beside the log, with the routes that name them.

    `learn` is told every secret that is used. Misconfigured where a bundle of authorities cannot be used.
    """
    routes = [Route(one.receivers, one.types, one.priorities, one.namespaces, one.teams) for one in chosen.routes]
    told: list[Receiver] = []
    if chosen.webhooks:
        client = await stack.enter_async_context(httpx2.AsyncClient())
        told += [WebhookReceiver(client, Hook(url)) for url in chosen.webhooks]
    for one in chosen.receivers:
        told.append(await _poster(one, learn, stack))
    return tuple(route_receiver(receiver, routes) for receiver in told)


async def _poster(chosen: ReceiverSettings, learn: Callable[[str], None], stack: AsyncExitStack) -> Receiver:
    def learn_address(url: str) -> None:
        for part in opaque_parts(url):
            learn(part)

    believed = authorities_of(f"herald.receivers: {chosen.name}", chosen.ca_bundle)
    client = await stack.enter_async_context(httpx2.AsyncClient(verify=believed))
    hook = Hook(
        chosen.url.get_secret_value(),
        url_file=chosen.url_file,
        token_file=chosen.token_file,
        seconds=chosen.timeout.total_seconds(),
        on_address=learn_address,
        on_token=learn,
    )
    if chosen.kind == "slack":
        return SlackReceiver(client, hook, chosen.name)
    return WebhookReceiver(client, hook, chosen.name)
