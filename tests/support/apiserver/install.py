"""Inquest's kinds, roles and policies in a server, as `kubectl apply` of the repository's files would bring them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from inquest.api.installation import EXECUTION_NAMESPACE, NAMESPACE, SERVICE_ACCOUNT
from tests.support.apiserver.server import ApiServer
from tests.support.apiserver.store import Write

ROOT: Final = Path(__file__).resolve().parents[3]
FOLDERS: Final = ("crds", "policies/admission", "policies/rbac")
BY_KUBECTL: Final = Write(manager="kubectl")


def install(server: ApiServer) -> None:
    """Namespaces, the operator's account, kinds, policies and roles."""
    account = {"metadata": {"name": SERVICE_ACCOUNT, "namespace": NAMESPACE}}
    for name in (NAMESPACE, EXECUTION_NAMESPACE):
        put(server, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    put(server, {"apiVersion": "v1", "kind": "ServiceAccount", **account})
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).glob("*.yaml")):
            for body in bodies(path):
                put(server, body)


def install_catalogue(server: ApiServer) -> None:
    """The workflows that come with Inquest, and the accounts that they run as."""
    for path in sorted((ROOT / "catalogue").glob("*.yaml")):
        for body in bodies(path):
            where = {} if path.name == "rbac.yaml" else {"namespace": NAMESPACE}
            put(server, {**body, "metadata": {**body["metadata"], **where}})


@cache
def bodies(path: Path) -> tuple[dict[str, Any], ...]:
    """The objects of a file."""
    return tuple(body for body in yaml.load_all(path.read_text(), yaml.CSafeLoader) if body)


def put(server: ApiServer, body: dict[str, Any]) -> None:
    """Create an object, or leave the one that is there."""
    group, _, version = body["apiVersion"].rpartition("/")
    known = (one for one in server.store.kinds if (one.group, one.version, one.kind) == (group, version, body["kind"]))
    kind, meta = next(known), body["metadata"]
    namespace = meta.get("namespace", "") if kind.namespaced else ""
    if server.store.find(kind, namespace, meta["name"]) is None:
        server.store.create(kind, namespace, body, BY_KUBECTL)
