"""The frame of every kind: one model base, one object envelope, the scalar types of the schema.

Reading is tolerant (`Resource.from_object` ignores unknown fields, so that an older process can read
what a newer one wrote); making one in code is strict (an unknown field is a mistake of ours).
Absence is None or an empty collection, and neither is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    StrictInt,
    StrictStr,
    WithJsonSchema,
    model_serializer,
)
from pydantic.alias_generators import to_camel

GROUP = "inquest.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
FIELD_MANAGER = "inquest"
"""Field manager of everything but ownership (`OWNER_FIELD_MANAGER`)."""
OWNER_FIELD_MANAGER = "inquest-owner"
"""Field manager of the compare-and-swap patch of owner, attempts and journal."""

# --- scalar types -----------------------------------------------------------------------------------


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is UTC and not moment.microsecond:
        return moment
    if moment.tzinfo is None:
        raise ValueError("a time needs its zone")
    try:
        return moment.astimezone(UTC).replace(microsecond=0)
    except OverflowError as error:
        raise ValueError("a time must lie between the years 1 and 9999") from error


def rfc3339(moment: datetime) -> str:
    """The one form in which times are written: UTC, whole seconds, `Z`."""
    return _in_utc(moment).strftime("%Y-%m-%dT%H:%M:%SZ")


TIME_PATTERN = (
    r"^(19[7-9][0-9]|2[0-9]{3})-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])$"
)
"""RFC 3339 as far as every reader can follow: the API server alone lets year 0 and an offset of a day pass."""
Time = Annotated[
    datetime,
    AfterValidator(_in_utc),
    PlainSerializer(rfc3339, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time", "pattern": TIME_PATTERN}),
]
"""A moment; kept in whole seconds, so that what is read equals what was written."""

DURATION_PATTERN = r"^([0-9]+(ms|s|m|h))+$"
Duration = Annotated[str, Field(max_length=32, pattern=DURATION_PATTERN)]
"""A Go duration such as `15m` or `1h30m`."""


def timedelta_from_duration(text: str) -> timedelta:
    """`1h30m` as a timedelta; raises ValueError where the text is no duration."""
    if not re.fullmatch(DURATION_PATTERN, text):
        raise ValueError(f"{text!r} is no duration such as 15m")
    parts = re.findall(r"([0-9]+)(ms|s|m|h)", text)
    return sum((int(count) * _UNITS[unit] for count, unit in parts), timedelta())


def duration_from_timedelta(span: timedelta) -> str:
    """The shortest duration text of whole seconds; what is below zero is `0s`."""
    seconds = max(0, int(span.total_seconds()))
    hours, minutes, rest = seconds // 3600, seconds % 3600 // 60, seconds % 60
    return "".join(f"{n}{unit}" for n, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if n) or "0s"


_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
}


def _two_decimals(number: float) -> float:
    return round(number, 2)


def _four_decimals(number: float) -> float:
    return round(number, 4)


Confidence = Annotated[float, Field(ge=0, le=1), PlainSerializer(_two_decimals, return_type=float, when_used="json")]
"""0 to 1; rounded to two decimals when written, never before: gates read the unrounded figure."""
Score = Annotated[float, Field(ge=0, le=1), PlainSerializer(_four_decimals, return_type=float, when_used="json")]
"""0 to 1, a share rather than a belief."""

Text63 = Annotated[str, Field(max_length=63)]
Text127 = Annotated[str, Field(max_length=127)]
Text200 = Annotated[str, Field(max_length=200)]
Text253 = Annotated[str, Field(max_length=253)]
Text300 = Annotated[str, Field(max_length=300)]
Text500 = Annotated[str, Field(max_length=500)]
Text512 = Annotated[str, Field(max_length=512)]
Text1000 = Annotated[str, Field(max_length=1000)]
Text1024 = Annotated[str, Field(max_length=1024)]
Text2000 = Annotated[str, Field(max_length=2000)]
Text2048 = Annotated[str, Field(max_length=2048)]
Text4000 = Annotated[str, Field(max_length=4000)]
Text4096 = Annotated[str, Field(max_length=4096)]
Text8192 = Annotated[str, Field(max_length=8192)]
Word = Annotated[str, Field(min_length=1, max_length=63)]
Name = Annotated[str, Field(min_length=1, max_length=253)]
Uid = Annotated[str, Field(max_length=63)]
Count = Annotated[int, Field(ge=0)]

Fingerprint = Annotated[str, Field(max_length=64, pattern=r"^[0-9a-f]{64}$")]
SpecHash = Annotated[str, Field(max_length=71, pattern=r"^sha256:[0-9a-f]{64}$")]
Digest = Annotated[str, Field(max_length=71, pattern=r"^(sha256:)?[0-9a-f]{64}$")]
"""A SHA-256, bare (the catalogue's content hashes) or with its prefix (everything else)."""

IntOrText = Annotated[
    StrictInt | StrictStr,
    Field(json_schema_extra={"x-kubernetes-int-or-string": True, "maxLength": 253}),
]

SET: dict[str, JsonValue] = {"x-kubernetes-list-type": "set"}
"""Marks a list of plain words."""


def keyed_by(field: str) -> dict[str, JsonValue]:
    """Marks a list of named things; `field` is the name."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [field]}


def cel_rule(expression: str, message: str, field_path: str | None = None) -> dict[str, JsonValue]:
    """One CEL validation; the message names the field and the rule."""
    found: dict[str, JsonValue] = {"rule": expression, "message": message}
    return found | ({"fieldPath": field_path} if field_path else {})


def cel_rules(*found: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Schema extra that carries CEL validations."""
    return {"x-kubernetes-validations": list(found)}


def _unique(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))


Unique = AfterValidator(_unique)
"""Repeated words are dropped: the API server refuses a set with duplicates."""


# --- models -----------------------------------------------------------------------------------------


class ApiModel(BaseModel):
    """Base of everything in the contract: frozen, camelCase outside, strict inside."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        protected_namespaces=(),
    )

    @model_serializer(mode="wrap")
    def _without_absence(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Absent optional fields are not written, so that presence means something to the CEL rules."""
        kept = _required_names(type(self))
        return {key: value for key, value in handler(self).items() if key in kept or not _is_absent(value)}

    def to_object(self) -> dict[str, Any]:
        """The JSON object that goes to the API server."""
        return self.model_dump(mode="json", by_alias=True)

    @classmethod
    def from_object(cls, found: Mapping[str, Any]) -> Self:
        """The value of a JSON object of the API server; what this version does not know is left out."""
        return cls.model_validate(found, extra="ignore")


@cache
def _required_names(model: type[ApiModel]) -> frozenset[str]:
    fields = ((name, field) for name, field in model.model_fields.items() if field.is_required())
    return frozenset(text for name, field in fields for text in (name, field.alias or name))


def _is_absent(value: object) -> bool:
    return value is None or (isinstance(value, (list, tuple, dict)) and not value)


class OwnerReference(ApiModel):
    """Who takes this object along when it is deleted."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None


class ObjectMeta(ApiModel):
    """What Inquest reads and writes of an object's metadata."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    labels: Mapping[str, str] = Field(default_factory=dict)
    annotations: Mapping[str, str] = Field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Condition(ApiModel):
    """One observable fact about an object."""

    type: Annotated[str, Field(max_length=63, pattern=r"^[A-Z][A-Za-z0-9]*$")]
    """What the condition is about, in PascalCase."""
    status: Literal["True", "False", "Unknown"]
    """True, False or Unknown."""
    reason: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Z][A-Za-z0-9]*$")]
    """One documented word for why."""
    message: Text1024
    """A sentence for people; may be empty."""
    last_transition_time: Time
    """When the status last flipped."""
    observed_generation: Count | None = None
    """Generation of the object that this was decided for."""


class StatusBase(ApiModel):
    """What every kind's status carries."""

    observed_generation: Count | None = None
    """Generation that was last worked through without a fault."""
    conditions: Annotated[tuple[Condition, ...], Field(max_length=16, json_schema_extra=keyed_by("type"))] = ()
    """Observable facts; every condition of the kind is listed from the first write."""

    def condition(self, name: str) -> Condition | None:
        """The condition of this type, or None before the first status write."""
        return next((found for found in self.conditions if found.type == name), None)

    def is_true(self, name: str) -> bool:
        """Whether the condition of this type is True."""
        found = self.condition(name)
        return found is not None and found.status == "True"


class Resource(ApiModel):
    """One object of one of the six kinds; every kind narrows `kind`, `spec` and `status`."""

    PLURAL: ClassVar[str]

    api_version: Literal["inquest.dev/v1alpha1"] = "inquest.dev/v1alpha1"
    kind: str
    metadata: ObjectMeta = ObjectMeta()
    spec: ApiModel
    status: StatusBase = StatusBase()

    @property
    def name(self) -> str:
        """Name of the object; empty before it has one."""
        return self.metadata.name or ""

    @property
    def namespace(self) -> str:
        """Namespace of the object; empty before it has one."""
        return self.metadata.namespace or ""

    @property
    def uid(self) -> str:
        """Uid of the object; empty before it was created."""
        return self.metadata.uid or ""

    @property
    def generation(self) -> int:
        """Generation of the spec; 0 before it was created."""
        return self.metadata.generation or 0
