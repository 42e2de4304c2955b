"""`ports.Herald`: Kubernetes Events, and notices to whoever is to be told (resources, section 13).

opening     the receivers that the settings name
delivery    Events, and each notice once for each receiver; what failed is tried again
routes      who gets which notice
receivers   the log, JSON to a URL, a Slack-compatible chat
words       text of a cluster as a receiver may show it
"""

from inquest.adapters.herald.delivery import KubeHerald
from inquest.adapters.herald.opening import receivers_of
from inquest.adapters.herald.receivers import (
    Hook,
    LogReceiver,
    Receiver,
    SlackReceiver,
    WebhookReceiver,
)
from inquest.adapters.herald.routes import Route, Routed, routed

__all__ = [
    "Hook",
    "KubeHerald",
    "LogReceiver",
    "Receiver",
    "Route",
    "Routed",
    "SlackReceiver",
    "WebhookReceiver",
    "receivers_of",
    "routed",
]
