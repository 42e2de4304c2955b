"""What a server of ours says of itself: to a caller on the same machine, and to who shows a token that may read it.

`kubectl port-forward` ends inside the pod, and so counts as the same machine; it takes a right of its own.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from inquest.serving.login import LoginMiddleware, LoginPolicy, Reviewer
from inquest.telemetry.metrics import PROBE_LOGINS

LOGIN_POLICY: Final = LoginPolicy(
    logins=PROBE_LOGINS,
    lacking="the account lacks the right to get /metrics (nonResourceURLs of a ClusterRole)",
    # Anybody in the cluster reaches this port: junk must not cost a review each time.
    refused_seconds=10.0,
)


class PrivatePaths:
    """Lets a request pass that is not `private`, that comes from here, or whose token may read metrics."""

    def __init__(
        self, app: ASGIApp, reviewer: Reviewer, private: Callable[[Scope], bool] = lambda _scope: True
    ) -> None:
        self._app, self._private = app, private
        self._asked = LoginMiddleware(app, reviewer, LOGIN_POLICY)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        passes = scope["type"] != "http" or is_local(scope) or not self._private(scope)
        await (self._app if passes else self._asked)(scope, receive, send)


def is_local(scope: Scope) -> bool:
    """Whether the other end of the connection is on this machine, or in this pod."""
    try:
        return ipaddress.ip_address((scope.get("client") or ("",))[0]).is_loopback
    except ValueError:
        return False
