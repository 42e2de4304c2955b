"""The rights of an installed Inquest and what its accounts asked, of a cluster that runs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from hack import HackError
from hack.cluster.audit import FILES
from hack.cluster.local import Cluster
from hack.rights.audit import Entry, entries
from hack.rights.grants import Right, rights
from hack.rights.judging import Run
from inquest.api.installation import EXECUTION_NAMESPACE, NAMESPACE

HOMES: Final = (NAMESPACE, EXECUTION_NAMESPACE)
KUBECTL_SECONDS: Final = 60
KINDS: Final = "clusterroles,roles,clusterrolebindings,rolebindings"


@dataclass(frozen=True)
class Standing:
    """From now on, until it is read; taken before the product is installed and read before it is removed."""

    cluster: Cluster
    homes: Sequence[str] = HOMES
    """Namespaces whose accounts are ours."""
    since: datetime = field(default_factory=lambda: datetime.now(UTC))

    def run(self) -> Run:
        """Rights as they are now, and every request since."""
        return Run(self._rights(), self.entries())

    def entries(self) -> tuple[Entry, ...]:
        """What our accounts asked."""
        return tuple(entry for entry in written(self.cluster.audit_log) if self._is_ours(entry))

    def _is_ours(self, entry: Entry) -> bool:
        return entry.at >= self.since and entry.asked.account.partition(":")[0] in self.homes

    def _rights(self) -> frozenset[Right]:
        command = [str(self.cluster.bin / "kubectl"), f"--kubeconfig={self.cluster.kubeconfig}"]
        command += ["get", KINDS, "-A", "-o", "json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=KUBECTL_SECONDS, check=False)
        if done.returncode != 0:
            raise HackError(f"roles and bindings cannot be read: {done.stderr.strip()}")
        return rights(json.loads(done.stdout)["items"], self.homes)


def written(log: Path) -> Iterator[Entry]:
    """Every entry of the log, oldest first; raises HackError where there is none, or the oldest are gone."""
    full = sorted(log.parent.glob(f"{log.stem}-*{log.suffix}"))
    if len(full) >= FILES:
        raise HackError(f"{log.parent} holds {len(full)} full files: older ones may have been deleted")
    if not log.exists():
        raise HackError(f"{log} is not there: what was asked is not known")
    for path in (*full, log):
        with path.open(encoding="utf-8") as lines:
            yield from entries(lines)
