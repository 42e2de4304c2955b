"""Names, digests and JSON texts that every part of the client writes and reads alike."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import yaml

from inquest.errors import Unavailable
from inquest.ports.datastorage import DATASTORAGE

API: Final = "/api/v1"
REGISTRAR: Final = "inquest"
"""Who the catalogue says registered a workflow; the sync touches nothing else."""


def digest_of_text(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def mapping_of(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text) if text.lstrip().startswith("{") else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise Unavailable(DATASTORAGE, "the content of a workflow cannot be read") from error
    return value if isinstance(value, dict) else {}
