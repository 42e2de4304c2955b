"""The aggregated API by which cases are read: its words, for the server, the command and the chart."""

from __future__ import annotations

from typing import Final

from inquest.api import base

GROUP: Final = f"evidence.{base.GROUP}"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "Case"
RESOURCE: Final = "cases"
RECORD: Final = "record"
ROOT: Final = f"/apis/{GROUP}/{VERSION}"
API_SERVICE: Final = f"{VERSION}.{GROUP}"
"""Name of the APIService."""
