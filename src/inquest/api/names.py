"""Names of everything that Inquest makes: a name is an identity, so that doing a thing twice does it once.

Names are never cut. One that would not fit is hashed whole, because two cut names may be equal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Final

from inquest.api import base
from inquest.api.base import rfc3339
from inquest.api.refs import TargetRef

DOMAIN: Final = "inquest.dev"
MANAGED_BY: Final = {"app.kubernetes.io/managed-by": "inquest"}
SIGNAL_LABEL: Final = f"{DOMAIN}/signal"
INVESTIGATION_LABEL: Final = f"{DOMAIN}/investigation"
FINGERPRINT_LABEL: Final = f"{DOMAIN}/fingerprint"
EVENT_LABEL: Final = f"{DOMAIN}/event"
"""On a Signal of an event of the cluster: its target and reason, hashed."""
EXECUTION_LABEL: Final = f"{DOMAIN}/execution"
CATALOGUE_ID_LABEL: Final = f"{DOMAIN}/catalogue-id"
JOURNAL_LABEL: Final = f"{DOMAIN}/journal"
REVIEWED_ANNOTATION: Final = f"{DOMAIN}/reviewed"
"""On an Investigation: `who, what`; ends a manual-review hold."""
TARGET_ANNOTATION: Final = f"{DOMAIN}/target"
"""On a Job: the target string that its name was made from."""
HEALTH_ANNOTATION: Final = f"{DOMAIN}/health-before"
"""On Jobs: the health score of the target right before, kept with the effect so that no crash comes in between."""
ENDS_ANNOTATION: Final = f"{DOMAIN}/ends-before"
"""On Jobs: how its containers had ended until then, kept in the same way."""
REQUESTER_ANNOTATION: Final = f"{DOMAIN}/requested-by"
"""On a Signal or an Investigation: the user who created it, as the API server authenticated them (`admission`)."""
INVESTIGATION_ANNOTATION: Final = f"{DOMAIN}/investigation"
"""On the Lease of an open case: the Investigation that has it open."""
VERSION_ANNOTATION: Final = f"{DOMAIN}/version"
"""On the Lease of a replica: the version of the program."""
FAULTS_ANNOTATION: Final = f"{DOMAIN}/faults"
"""On the Lease of a replica: what is wrong with it now, a line for each part, `part: fault`."""
MANAGED_LABEL: Final = f"{DOMAIN}/managed"
"""On a namespace or a workload: `true` puts it into Inquest's care."""

READ_PREFIXES: Final = (f"{DOMAIN}/", "kubernaut.ai/")
"""Prefixes of those labels; the first one wins."""

MAX_NAME: Final = 253
MAX_LABEL: Final = 63
MAX_DISPLAY: Final = 127
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def fingerprint(namespace: str | None, kind: str, name: str) -> str:
    """Identity of a case: the root owner; a cluster-scoped one has an empty namespace."""
    return _hex(f"{namespace or ''}:{kind}:{name}")


def fingerprint_of(owner: TargetRef) -> str:
    """Identity of the case of this root owner."""
    return fingerprint(owner.namespace, owner.kind, owner.name)


def fingerprint_of_unknown(namespace: str | None, signal_name: str) -> str:
    """Identity of the case of a Signal without a target: else all of a namespace would be one case."""
    return fingerprint(namespace, "Unknown", signal_name)


def signal_name(source_type: str, name: str, target: TargetRef, firing_time: datetime | None) -> str:
    """Name of a Signal made by intake: a repeated notification meets the same object."""
    since = rfc3339(firing_time) if firing_time else None
    return f"sig-{_hex_of(str(source_type), name, target.namespace or '', target.kind, target.name, since)[:16]}"


def event_key(reason: str, target: TargetRef) -> str:
    """What events of one target and reason have in common: the value of `EVENT_LABEL`."""
    return _hex_of(reason, target.namespace or "", target.kind, target.name)[:16]


def investigation_name(fingerprint: str, signal_uid: str, round_: int) -> str:
    """Name of an Investigation made by the operator: one for each round of a Signal."""
    return f"inv-{fingerprint[:12]}-{_hex_of(signal_uid, round_)[:8]}"


def approval_name(investigation: str) -> str:
    """Name of the approval request of an Investigation."""
    return _fitting("rar-", investigation)


def execution_name(investigation: str) -> str:
    """Name of the execution of an Investigation."""
    return _fitting("wfe-", investigation)


def undo_name(investigation: str) -> str:
    """Name of the execution that takes back what an Investigation did."""
    return _fitting("wfe-", investigation, "-undo")


def target_string(target: TargetRef) -> str:
    """`namespace/Kind/name`, or `Kind/name` for what is cluster-scoped."""
    return f"{target.namespace}/{target.display}" if target.namespace else target.display


def job_name(target: str) -> str:
    """Name of the Job that changes a target, made from its target string: the name is the lock."""
    return f"wfe-{_hex(target)[:16]}"


def case_lease_name(fingerprint: str) -> str:
    """Name of the Lease of an open case: who creates it opens the case."""
    return f"inquest-case-{fingerprint[:16]}"


def replica_lease_name(pod: str) -> str:
    """Name of the Lease that shows that a replica lives."""
    return _fitting("inquest-replica-", pod)


def slot_name(investigation_uid: str, seq: int) -> str:
    """Name of a slot of the journal; numbers begin at 1."""
    return f"{investigation_uid}-{seq:04d}"


def target_display(target: TargetRef) -> str:
    """`Kind/name`, for columns; cut where it is too long, it identifies nothing."""
    return _shown(target.display)


def workflow_display(action_type: str, workflow_id: str) -> str:
    """`ActionType:id`, for columns."""
    return _shown(f"{action_type}:{workflow_id}")


def child_labels(
    *, signal: str | None = None, investigation: str | None = None, fingerprint: str | None = None
) -> dict[str, str]:
    """Labels of everything that is made for a case."""
    found = {
        SIGNAL_LABEL: signal and label_value(signal),
        INVESTIGATION_LABEL: investigation and label_value(investigation),
        FINGERPRINT_LABEL: fingerprint and fingerprint[:16],
    }
    return MANAGED_BY | {key: value for key, value in found.items() if value}


def label_value(text: str) -> str:
    """The text, if it can be a label's value; else its hash."""
    fits = len(text) <= MAX_LABEL and _LABEL_VALUE.fullmatch(text)
    return text if fits else _hex(text)[:32]


def read_label(labels: Mapping[str, str], word: str) -> str | None:
    """Value of one of the labels that are read, whatever its prefix; an empty one counts as absent."""
    values = (labels.get(f"{prefix}{word}") for prefix in READ_PREFIXES)
    return next((value for value in values if value), None)


def _fitting(before: str, name: str, after: str = "") -> str:
    whole = f"{before}{name}{after}"
    return whole if len(whole) <= MAX_NAME else f"{before}{_hex(name)}{after}"


def _shown(text: str) -> str:
    return text if len(text) <= MAX_DISPLAY else f"{text[: MAX_DISPLAY - 1]}…"


def _hex_of(*parts: str | int | None) -> str:
    return _hex(json.dumps(parts, ensure_ascii=False, separators=(",", ":")))


def _hex(text: str) -> str:
    return sha256(text.encode()).hexdigest()


EVIDENCE_GROUP: Final = f"evidence.{base.GROUP}"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{EVIDENCE_GROUP}/{VERSION}"
KIND: Final = "Case"
EVIDENCE_RESOURCE: Final = "cases"
EVIDENCE_RECORD: Final = "record"
ROOT: Final = f"/apis/{EVIDENCE_GROUP}/{VERSION}"
API_SERVICE: Final = f"{VERSION}.{EVIDENCE_GROUP}"
"""Name of the APIService."""
