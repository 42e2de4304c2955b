"""A folder of audit chains that proves itself: written once, checked anywhere without a service (section 10.6).

events.jsonl     one event a line, as the audit query shows it, in the order of appending; whole chains only
manifest.json    canonical JSON: what stands in it, the SHA-256 of `events.jsonl`, each chain with its head hash
manifest.sig     Ed25519 over the bytes of `manifest.json`; only with a key
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from inquest.datastorage.domain.hash_chain import ChainedEvent, ChainHead, ChainVerifier
from inquest.datastorage.wire.audit_events import StoredEvent
from inquest.datastorage.wire.types import instant_from_text, instant_text

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

EVENTS: Final = "events.jsonl"
MANIFEST: Final = "manifest.json"
SIGNATURE: Final = "manifest.sig"
FORMAT: Final = 1


class NotWhole(ValueError):
    """A folder, a key or an export that cannot be used; the text says why."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class BundleChain(_Part):
    """One chain."""

    correlation_id: str
    first_event_id: str
    last_event_id: str
    events: int
    head_hash: str


class Manifest(_Part):
    """What a folder holds."""

    format_version: int
    from_: str
    to: str
    count: int
    events_sha256: str
    chains: tuple[BundleChain, ...]
    public_key_fingerprint: str | None = None
    """SHA-256 of the key's DER form, in hex."""

    def canonical(self) -> bytes:
        """The bytes that are signed."""
        members = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        return json.dumps(members, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


@dataclass(frozen=True)
class BundleCheck:
    """`faults` in the order found, the first one first; `signed` whether a signature was checked."""

    manifest: Manifest | None
    faults: tuple[str, ...] = ()
    signed: bool = False


class Signer:
    """An Ed25519 key of a PEM file."""

    def __init__(self, pem: bytes) -> None:
        self._key = _private(pem)

    @property
    def fingerprint(self) -> str:
        """Of the public half."""
        return fingerprint(self._key.public_key())

    def sign(self, text: bytes) -> bytes:
        """64 bytes."""
        return self._key.sign(text)


class BundleWriter:
    """Lines go out as they come; the manifest is written last, so a folder without one is not finished."""

    def __init__(self, folder: Path, out: IO[bytes]) -> None:
        self._folder = folder
        self._out = out
        self._sum = hashlib.sha256()
        self._count = 0

    def add(self, event: Mapping[str, Any]) -> None:
        """One line."""
        line = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        self._out.write(line)
        self._sum.update(line)
        self._count += 1

    def finish(
        self, strands: Mapping[str, ChainHead], *, since: datetime, until: datetime, sign: Signer | None
    ) -> Manifest:
        """Manifest and signature."""
        self._out.flush()
        manifest = Manifest(
            format_version=FORMAT,
            from_=instant_text(since),
            to=instant_text(until),
            count=self._count,
            events_sha256=self._sum.hexdigest(),
            chains=tuple(_entry(name, strands[name]) for name in sorted(strands)),
            public_key_fingerprint=sign.fingerprint if sign else None,
        )
        if sign:
            (self._folder / SIGNATURE).write_bytes(sign.sign(manifest.canonical()))
        (self._folder / MANIFEST).write_bytes(manifest.canonical())
        return manifest


@contextmanager
def open_bundle(folder: Path) -> Iterator[BundleWriter]:
    """A new folder; NotWhole where it is there already: an archive is never written over."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError as error:
        raise NotWhole(f"{folder} is there already: name a new folder") from error
    with (folder / EVENTS).open("wb") as out:
        yield BundleWriter(folder, out)


def verify_bundle(folder: Path, public_key: bytes | None, *, signed: bool = True) -> BundleCheck:
    """Signature, sums, and every chain; with `signed` False nothing is said of the signature."""
    try:
        raw = (folder / MANIFEST).read_bytes()
        manifest = Manifest.model_validate_json(raw)
    except OSError as error:
        return BundleCheck(None, (f"{MANIFEST} cannot be read ({error.strerror}): the export was not finished",))
    except ValidationError as error:
        return BundleCheck(None, (f"{MANIFEST} is no manifest: {_where(error)}",))
    faults = list(_signature_faults(folder, raw, manifest, public_key)) if signed else []
    faults += _content_faults(folder, manifest)
    return BundleCheck(manifest, tuple(faults), signed and public_key is not None)


def fingerprint(key: Ed25519PublicKey) -> str:
    """SHA-256 of the DER form, in hex."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # late: only who signs needs it

    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


# --- parts ------------------------------------------------------------------------------------------------------


def _entry(name: str, strand: ChainHead) -> BundleChain:
    return BundleChain(
        correlation_id=name,
        first_event_id=strand.first,
        last_event_id=strand.last,
        events=strand.events,
        head_hash=strand.head,
    )


def _signature_faults(folder: Path, raw: bytes, manifest: Manifest, public_key: bytes | None) -> Iterator[str]:
    if public_key is None:
        return
    from cryptography.exceptions import InvalidSignature  # late: only who checks a signature needs it

    key = _public(public_key)
    if manifest.public_key_fingerprint != fingerprint(key):
        yield f"{MANIFEST} names another key: {manifest.public_key_fingerprint or 'none'}"
    try:
        key.verify((folder / SIGNATURE).read_bytes(), raw)
    except OSError:
        yield f"{SIGNATURE} is missing"
    except InvalidSignature:
        yield f"{SIGNATURE} does not fit {MANIFEST}"


def _content_faults(folder: Path, manifest: Manifest) -> list[str]:
    book, total, faults = ChainVerifier(), hashlib.sha256(), list[str]()
    try:
        with (folder / EVENTS).open("rb") as lines:
            for number, line in enumerate(lines, 1):
                total.update(line)
                faults += _line_faults(book, line, number)
    except OSError as error:
        return [f"{EVENTS} cannot be read ({error.strerror})"]
    if total.hexdigest() != manifest.events_sha256:
        faults.append(f"{EVENTS} is not the file that {MANIFEST} speaks of (its SHA-256 differs)")
    return faults + _chain_faults(book, manifest)


def _line_faults(book: ChainVerifier, line: bytes, number: int) -> list[str]:
    try:
        link = _link(json.loads(line))
    except (ValueError, TypeError, KeyError, RecursionError):
        return [f"{EVENTS}, line {number}: no event"]
    finding = book.add(link)
    if finding is None:
        return []
    return [f"{link.event.correlation_id}: event {link.event.event_id} (line {number}): {finding.message}"]


def _chain_faults(book: ChainVerifier, manifest: Manifest) -> list[str]:
    named = {entry.correlation_id: entry for entry in manifest.chains}
    found = {name: _entry(name, strand) for name, strand in book.strands.items()}
    missing = [f"{name}: no event of this chain is there" for name in sorted(named.keys() - found.keys())]
    foreign = [f"{name}: {MANIFEST} does not name this chain" for name in sorted(found.keys() - named.keys())]
    other = [
        f"{name}: ends with event {found[name].last_event_id}, not with {named[name].last_event_id} as in {MANIFEST}"
        for name in sorted(named.keys() & found.keys())
        if named[name] != found[name]
    ]
    return missing + foreign + other


_MEMBERS: Final = (
    *("event_id", "event_type", "version", "event_category", "event_action", "event_outcome", "correlation_id"),
    *("event_data", "parent_event_id", "retention_days", "is_sensitive"),
)
_OPTIONAL: Final = (
    *("resource_type", "resource_id", "namespace", "cluster_name", "severity"),
    *("duration_ms", "error_code", "error_message", "actor_id", "actor_type"),
)


def _link(shown: Mapping[str, Any]) -> ChainedEvent:
    required = {name: shown[name] for name in _MEMBERS}
    optional: dict[str, Any] = {name: shown.get(name) for name in _OPTIONAL}
    event = StoredEvent(event_timestamp=instant_from_text(shown["event_timestamp"]), **required, **optional)
    return ChainedEvent(event, str(shown["event_hash"]), str(shown["previous_event_hash"]))


def _where(error: ValidationError) -> str:
    return ", ".join(".".join(map(str, fault["loc"])) or "no JSON" for fault in error.errors()[:3])


def _private(pem: bytes) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # late: only who signs needs it
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise NotWhole("the signing key is no private key in PEM without a password") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise NotWhole("the signing key is no Ed25519 key")
    return key


def _public(pem: bytes) -> Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # late: only who checks needs it
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(pem)
    except ValueError as error:
        raise NotWhole("the public key is no key in PEM") from error
    if not isinstance(key, Ed25519PublicKey):
        raise NotWhole("the public key is no Ed25519 key")
    return key
