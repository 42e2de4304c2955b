"""The release that all cases share: an operator that hurries, with its database on a volume, and the people around."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from hack.cluster import local
from hack.rights.standing import Standing
from tests.e2e.chart.cases.plays import SECONDS, Team
from tests.e2e.chart.chart import CHART, NAMESPACE
from tests.e2e.chart.conftest import CLUSTER, WAIT, Site, released
from tests.support.api import Api, Object, opened
from tests.support.kube import eventually

APPROVERS: Final = ("jane", "bob", {"group": "oncall"})
PEOPLE: Final[Mapping[str, tuple[str, ...]]] = {
    "jane": (),
    "bob": (),
    "grace": ("oncall", "payments"),
    "ivan": ("leavers",),
    "mallory": ("payments",),
    "eve": (),
}
"""Users by certificate, with the groups that it names; nobody has bound the names of grace, ivan and mallory."""
SETTINGS: Final[Mapping[str, Any]] = {
    "approval": {"timeout": "50s", "required": {"production": 1, "test": 2}, "separate_requester": True},
    "effectiveness": {"stabilization": "8s", "validity": "5m"},
    "execution": {"cooldown": "5s"},
    "triage": {"recently_remediated": "1s", "rate_per_namespace": 30},
}
"""Figures of a minute in the place of those of an hour; the rest is as installed."""
TRAIL: Final = """
import asyncio, json
from pathlib import Path
from sqlalchemy import select
from inquest.datastorage.store.audit import shown_event
from inquest.datastorage.store.opening import open_database
from inquest.datastorage.store.tables import audit_events
from inquest.settings.settings import Settings

async def main():
    database = open_database(Settings.load(Path("/etc/inquest/settings.yaml")).datastorage.database)
    events = select(audit_events).order_by(audit_events.c.seq)
    for row in await database.read(lambda connection: connection.execute(events).mappings().all()):
        print(json.dumps(shown_event(row)))
    await database.close()

asyncio.run(main())
"""
"""Prints every event of DataStorage, one a line, as the audit query shows it."""


@dataclass(frozen=True)
class Release:
    """The chart on the real node."""

    site: Site
    api: Api
    people: Mapping[str, Api]
    standing: Standing
    """What its accounts may and ask."""

    def team(self, namespace: str, environment: str) -> Team:
        """A namespace in Inquest's care."""
        labels = {"inquest.dev/managed": "true", "inquest.dev/environment": environment, "inquest.dev/team": namespace}
        self.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}})
        return Team(self.site, self.api, self.people, namespace)

    def values(self, *windows: Object, changes: Mapping[str, Any] | None = None, **more: Any) -> Object:
        """What the release is made with, beside what every release is; `changes` are groups of other settings."""
        return self.site.values(
            catalogue={"enabled": True, "image": self.site.images["kubectl"].pinned},
            rbac={"approvers": list(APPROVERS)},
            settings={**SETTINGS, "freeze_windows": list(windows), **(changes or {})},
            **more,
        )

    def upgrade(self, values: Object) -> None:
        """Another operator takes over; it is waited for by itself, for OPA may be away on purpose."""
        (old,) = self.pods()
        self.site.helm("upgrade", "inquest", str(CHART), values=values)
        eventually(lambda: self._followed(old), what="the next operator is ready", seconds=SECONDS)

    def pods(self) -> list[Object]:
        """The operator's."""
        return self.api.list("Pod", NAMESPACE, labels="app.kubernetes.io/name=inquest")

    def _followed(self, old: Object) -> bool:
        uids = {pod["metadata"]["uid"]: pod for pod in self.pods()} | {old["metadata"]["uid"]: {}}
        boxes = [box for pod in uids.values() for box in pod.get("status", {}).get("containerStatuses", [])]
        return any(box["name"] == "operator" and box["ready"] for box in boxes)

    def inquest(self, *arguments: str) -> str:
        """The product's own command, where the operator runs."""
        return self.python("-m", "inquest.cli.main", *arguments, "--settings", "/etc/inquest/settings.yaml")

    def python(self, *arguments: str) -> str:
        """The image has no shell."""
        place = ("exec", "-n", NAMESPACE, "deploy/inquest", "-c", "operator")
        return self.site.kubectl(*place, "--", "/opt/inquest/bin/python", *arguments)

    def trail(self) -> list[Object]:
        """Every event that DataStorage holds."""
        return [json.loads(line) for line in self.python("-c", TRAIL).splitlines()]

    def is_registered(self) -> bool:
        """Whether the whole catalogue is in force."""
        found = self.api.list("RemediationWorkflow", NAMESPACE)
        return bool(found) and all(one.get("status", {}).get("registration") == "Active" for one in found)


@contextmanager
def release(site: Site, *windows: Object) -> Iterator[Release]:
    """The chart with its catalogue, and effects frozen in these windows."""
    paths = {name: local.person(name, *groups, name=CLUSTER) for name, groups in PEOPLE.items()}
    with ExitStack() as stack:
        api = stack.enter_context(opened(site.cluster.kubeconfig))
        people = {name: stack.enter_context(opened(path)) for name, path in paths.items()}
        found = Release(site, api, people, Standing(site.cluster))
        values = found.values(*windows)
        stack.enter_context(released(site, {**values, "catalogue": {"enabled": False}}))
        site.helm("upgrade", "inquest", str(CHART), *WAIT, values=values)
        site.kubectl("create", "rolebinding", "eve", "-n", NAMESPACE, "--clusterrole=inquest-viewer", "--user=eve")
        site.kubectl("create", "rolebinding", "asks", "-n", NAMESPACE, "--clusterrole=inquest-editor", "--user=jane")
        patches = ("--verb=get,patch", "--resource=remediationapprovalrequests.inquest.dev")
        site.kubectl("create", "role", "patches", "-n", NAMESPACE, *patches)
        site.kubectl("create", "rolebinding", "patches", "-n", NAMESPACE, "--role=patches", "--group=payments")
        eventually(found.is_registered, what="the catalogue is registered", seconds=SECONDS)
        yield found
