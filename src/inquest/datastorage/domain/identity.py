"""A workflow is its content: the same bytes have the same id, also after the loss of the whole database."""

from __future__ import annotations

import hashlib
import uuid

WORKFLOW_NAMESPACE = uuid.UUID("6ba7b810-9dad-51d0-80b7-00c04fd430c8")
"""Not the DNS namespace of RFC 4122: the peer writes `51d0` where that has `11d1`."""


def content_hash(content: str) -> str:
    """SHA-256 of the UTF-8 text as 64 lower-case hex digits, without a prefix."""
    return hashlib.sha256(content.encode()).hexdigest()


def workflow_id(content: str) -> str:
    """UUIDv5 of the content hash, in canonical lower-case text."""
    return str(uuid.uuid5(WORKFLOW_NAMESPACE, content_hash(content)))


def canonical_uuid(text: str) -> str | None:
    """The canonical lower-case form, or None for a text that is no UUID."""
    try:
        return str(uuid.UUID(text)) if len(text) == 36 else None
    except ValueError:
        return None
