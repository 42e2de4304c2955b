"""The API server behind the intake, as the intake's own tests have it."""

from __future__ import annotations

from tests.unit.server.intake.conftest import server

__all__ = ["server"]
