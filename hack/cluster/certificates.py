"""The cluster's certificates: one authority, and one key pair for each who speaks.

They are made once per cluster and kept with its state, so that a restart keeps every kubeconfig valid.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hack.cluster.state import write_atomically

LIFETIME = timedelta(days=365)
CLOCK_SKEW = timedelta(hours=1)


@dataclass(frozen=True)
class Subject:
    """Who a certificate speaks for: a user name, its groups, and the addresses it may serve."""

    file: str
    common_name: str
    organization: str | None = None
    groups: Sequence[str] = ()
    """More of the same."""
    names: Sequence[str] = ()
    addresses: Sequence[IPv4Address] = ()


class Authority:
    """The cluster's certificate authority, on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not self.certificate.exists():
            self._create()

    @property
    def certificate(self) -> Path:
        """The root that everybody trusts."""
        return self.folder / "ca.crt"

    def issue(self, subject: Subject) -> tuple[Path, Path]:
        """The certificate and the key of that subject, made when they are first asked for."""
        certificate, key = self.folder / f"{subject.file}.crt", self.folder / f"{subject.file}.key"
        if not certificate.exists():
            pair = ec.generate_private_key(ec.SECP256R1())
            write_atomically(key, _pem_of_key(pair))
            write_atomically(certificate, _pem(self._sign(subject, pair.public_key())))
        return certificate, key

    def service_account_keys(self) -> tuple[Path, Path]:
        """The private and the public key of service account tokens; RSA, for every client can check it."""
        private, public = self.folder / "service-account.key", self.folder / "service-account.pub"
        if not public.exists():
            pair = rsa.generate_private_key(public_exponent=65537, key_size=2048)
            write_atomically(private, _pem_of_key(pair))
            write_atomically(public, _pem_of_public(pair.public_key()))
        return private, public

    def _create(self) -> None:
        pair = ec.generate_private_key(ec.SECP256R1())
        name = _name(Subject("ca", "inquest-local"))
        builder = _builder(name, name, pair.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(pair.public_key()), critical=False)
        write_atomically(self.folder / "ca.key", _pem_of_key(pair))
        write_atomically(self.certificate, _pem(builder.sign(pair, hashes.SHA256())))

    def _sign(self, subject: Subject, public: ec.EllipticCurvePublicKey) -> x509.Certificate:
        root = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        key = serialization.load_pem_private_key((self.folder / "ca.key").read_bytes(), password=None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        builder = _builder(_name(subject), root.subject, public)
        usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        builder = builder.add_extension(usages, critical=False)
        alternatives = _alternatives(subject)
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        return builder.sign(key, hashes.SHA256())


def _builder(subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(issuer, subject, public, x509.random_serial_number())
    return builder.not_valid_before(now - CLOCK_SKEW).not_valid_after(now + LIFETIME)


def _name(subject: Subject) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, subject.common_name)]
    groups = [subject.organization, *subject.groups] if subject.organization else subject.groups
    return x509.Name([*(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups), *attributes])


def _alternatives(subject: Subject) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in subject.names]
    return [*names, *(x509.IPAddress(address) for address in subject.addresses)]


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _pem_of_key(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> str:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()


def _pem_of_public(key: rsa.RSAPublicKey) -> str:
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()
