"""Two questions for a server of ours: whose token is this, and may they."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from inquest.adapters.kubernetes import paths
from inquest.adapters.kubernetes.transport import Request, Transport, Unknown
from inquest.errors import Forbidden, Unavailable
from inquest.ports.kubernetes import Access, Json, ResourceKind

AUTHENTICATION: Final = "authentication.k8s.io"
AUTHORIZATION: Final = "authorization.k8s.io"


class AccessReviewer:
    """SubjectAccessReviews for any right of anybody; needs the right to create them, no other."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def may(self, user: Json, access: Access, name: str = "") -> bool:
        """Whether that user, uid, groups and extra included, has the right; on the object of a name if one is given."""
        words = {
            "verb": access.verb,
            "group": access.group,
            "resource": access.resource,
            "subresource": access.subresource,
            "namespace": access.namespace,
            "name": name,
        }
        return await _may(self._transport, user, {word: value for word, value in words.items() if value})


class TokenReviewer:
    """TokenReview, then SubjectAccessReview for one right; needs the right to create both, no other.

    `attributes` are the `resourceAttributes` of that right, as Kubernetes names them. `inside` a namespace the second
    question is a LocalSubjectAccessReview, for which a Role is enough; the first always needs a right in the cluster.
    """

    def __init__(self, transport: Transport, attributes: Mapping[str, str], *, inside: str = "") -> None:
        self._transport = transport
        self._attributes, self._inside = dict(attributes), inside

    async def authenticate(self, token: str) -> Json | None:
        """Username, uid, groups and extra of whose token it is; None for one that is not valid."""
        status = await _status(self._transport, AUTHENTICATION, "TokenReview", {"token": token})
        user = status.get("user")
        if not status.get("authenticated"):
            return None
        if not isinstance(user, dict):
            raise Unavailable("the API server", "its TokenReview names no user")
        return user

    async def authorise(self, user: Json) -> bool:
        """Whether that user, groups and extra included, has the right."""
        return await _may(self._transport, user, self._attributes, self._inside)


class MetricsAuthorizer:
    """Whether whoever holds a token may `get` a path of ours that is no resource, such as `/metrics`.

    The API server is asked in the name of the caller, so that it needs no right of this account: an operator of single
    namespaces can be given none to review tokens.
    """

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport, self._path = transport, path

    async def authenticate(self, token: str) -> Json | None:
        """A name for whoever holds it, with `allowed`; None for a token that is not valid."""
        attributes = {"path": self._path, "verb": "get"}
        try:
            async with self._transport.as_holder(token) as theirs:
                status = await _status(
                    theirs, AUTHORIZATION, "SelfSubjectAccessReview", {"nonResourceAttributes": attributes}
                )
        except Unknown:
            return None
        except Forbidden:
            status = {}
        return {"username": "a reader", "allowed": bool(status.get("allowed")) and not status.get("denied")}

    async def authorise(self, user: Json) -> bool:
        """What was learned with the name."""
        return bool(user.get("allowed"))


async def _may(transport: Transport, user: Json, attributes: Json, inside: str = "") -> bool:
    asked = {"user": user.get("username", ""), "resourceAttributes": attributes}
    known = {name: user[name] for name in ("uid", "groups", "extra") if user.get(name)}
    kind = "LocalSubjectAccessReview" if inside else "SubjectAccessReview"
    status = await _status(transport, AUTHORIZATION, kind, {**asked, **known}, inside)
    return bool(status.get("allowed")) and not status.get("denied")


async def _status(transport: Transport, group: str, kind: str, spec: Json, namespace: str = "") -> Json:
    # A review stores nothing: it counts as a read and may be repeated.
    asked = ResourceKind(group, "v1", kind, f"{kind.lower()}s", bool(namespace))
    frame = {"metadata": {"namespace": namespace}} if namespace else {}
    body = {"apiVersion": asked.api_version, "kind": kind, **frame, "spec": spec}
    path = paths.collection_path(asked, namespace)
    reply = await transport.send(Request("POST", path, "create", asked.plural, body=body))
    status = reply.json().get("status")
    if not isinstance(status, dict):
        raise Unavailable("the API server", f"its {kind} has no status")
    return status
