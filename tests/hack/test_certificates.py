"""Everybody in the cluster is signed by its one authority, once."""

from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509

from hack.cluster.certificates import Authority, Subject


def test_a_certificate_is_signed_for_its_user_group_and_address(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    path, _ = authority.issue(
        Subject("worker", "system:node:worker", "system:nodes", addresses=[IPv4Address("10.0.0.2")])
    )

    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate.read_bytes()))
    assert certificate.subject.rfc4514_string() == "CN=system:node:worker,O=system:nodes"
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.IPAddress) == [IPv4Address("10.0.0.2")]


def test_a_restart_keeps_every_certificate(tmp_path: Path) -> None:
    subject = Subject("admin", "admin", "system:masters")
    before = Authority(tmp_path).issue(subject)[0].read_bytes()

    assert Authority(tmp_path).issue(subject)[0].read_bytes() == before
