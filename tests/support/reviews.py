"""A reviewer of tokens that knows them by name, for the servers that share a login."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from inquest.errors import Unavailable


@dataclass
class Reviews:
    """`good` is whom it is told of and may enter, `weak` may not, `odd` has no name; counts what it is asked."""

    name: str
    down: str = ""
    """`authenticate` or `authorise`: which question is not answered."""
    users: dict[str, dict[str, Any]] = field(init=False)
    allowed: set[str] = field(init=False)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.users = {"good": {"username": self.name}, "weak": {"username": "joe"}, "odd": {}}
        self.allowed = {self.name}

    async def authenticate(self, token: str) -> dict[str, Any] | None:
        self.asked.append(token)
        if self.down == "authenticate":
            raise Unavailable("the API server")
        return self.users.get(token)

    async def authorise(self, user: dict[str, Any]) -> bool:
        if self.down == "authorise":
            raise Unavailable("the API server")
        return user["username"] in self.allowed
