"""Two questions for a server of ours: whose token is this, and may they (datastorage, 3; resources, 11.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from inquest.adapters.kube.transport import Request, Transport
from inquest.errors import Unavailable
from inquest.ports import Json

AUTHENTICATION: Final = "authentication.k8s.io"
AUTHORIZATION: Final = "authorization.k8s.io"


class KubeReviews:
    """TokenReview, then SubjectAccessReview for one right; needs the right to create both, no other.

    `attributes` are the `resourceAttributes` of that right, as Kubernetes names them.
    """

    def __init__(self, transport: Transport, attributes: Mapping[str, str]) -> None:
        self._transport = transport
        self._attributes = dict(attributes)

    async def authenticate(self, token: str) -> Json | None:
        """Username, uid, groups and extra of whose token it is; None for one that is not valid."""
        status = await self._status(AUTHENTICATION, "TokenReview", {"token": token})
        user = status.get("user")
        if not status.get("authenticated"):
            return None
        if not isinstance(user, dict):
            raise Unavailable("the API server", "its TokenReview names no user")
        return user

    async def authorise(self, user: Json) -> bool:
        """Whether that user, groups and extra included, has the right."""
        asked = {"user": user.get("username", ""), "resourceAttributes": self._attributes}
        known = {name: user[name] for name in ("uid", "groups", "extra") if user.get(name)}
        status = await self._status(AUTHORIZATION, "SubjectAccessReview", {**asked, **known})
        return bool(status.get("allowed")) and not status.get("denied")

    async def _status(self, group: str, kind: str, spec: Json) -> Json:
        # A review stores nothing: it counts as a read and may be repeated.
        version, plural = f"{group}/v1", f"{kind.lower()}s"
        body = {"apiVersion": version, "kind": kind, "spec": spec}
        reply = await self._transport.send(Request("POST", f"/apis/{version}/{plural}", "create", plural, body=body))
        status = reply.json().get("status")
        if not isinstance(status, dict):
            raise Unavailable("the API server", f"its {kind} has no status")
        return status
