"""Java and this broker write the same names of certificates."""

from __future__ import annotations

import base64
import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from logd.security.subject_name import BadName, subject_name
from tests.support import java
from tests.support.certificates import Authority

KEY = ec.generate_private_key(ec.SECP256R1())
NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
Attribute = x509.NameAttribute


def one(*attributes: x509.NameAttribute[str]) -> x509.RelativeDistinguishedName:
    return x509.RelativeDistinguishedName(attributes)


NAMES = {
    "usual": [
        one(Attribute(NameOID.COUNTRY_NAME, "DE")),
        one(Attribute(NameOID.STATE_OR_PROVINCE_NAME, "Sachsen")),
        one(Attribute(NameOID.LOCALITY_NAME, "Dresden")),
        one(Attribute(NameOID.ORGANIZATION_NAME, "Müller, Söhne & Co.")),
        one(Attribute(NameOID.ORGANIZATIONAL_UNIT_NAME, 'a+b=c;d<e>f"g\\h#i')),
        one(Attribute(NameOID.COMMON_NAME, "alice")),
    ],
    "spaces": [one(Attribute(NameOID.COMMON_NAME, "  two words  "))],
    "hash": [one(Attribute(NameOID.COMMON_NAME, "#number"))],
    "several": [
        one(Attribute(NameOID.DOMAIN_COMPONENT, "example")),
        one(Attribute(NameOID.USER_ID, "u1"), Attribute(NameOID.COMMON_NAME, "alice")),
        one(Attribute(NameOID.STREET_ADDRESS, "Main Street 1")),
    ],
    "others": [
        one(Attribute(NameOID.EMAIL_ADDRESS, "a@example.org")),
        one(Attribute(NameOID.SERIAL_NUMBER, "12345")),
        one(Attribute(NameOID.TITLE, "x" * 200)),
        one(Attribute(NameOID.COMMON_NAME, "bmp", _type=_ASN1Type.BMPString)),
    ],
    "empty": [],
}


def certificate(parts: list[x509.RelativeDistinguishedName]) -> x509.Certificate:
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name(parts))
        .issuer_name(x509.Name([Attribute(NameOID.COMMON_NAME, "not this")]))
        .public_key(KEY.public_key())
        .serial_number(1)
        .not_valid_before(NOW)
        .not_valid_after(NOW + datetime.timedelta(days=1))
        .sign(KEY, hashes.SHA256())
    )


def der(of: x509.Certificate) -> bytes:
    return of.public_bytes(serialization.Encoding.DER)


@java.needs_javac
def test_the_same_names() -> None:
    made = {title: certificate(parts) for title, parts in NAMES.items()}
    lines = [f"subject\t{base64.b64encode(each.subject.public_bytes()).decode()}" for each in made.values()]
    expected = java.run_program("PrincipalNames", stdin="\n".join(lines)).splitlines()
    assert [subject_name(der(each)) for each in made.values()] == expected


def test_a_damaged_certificate_is_a_bad_name() -> None:
    whole = der(Authority("test CA").issue("alice").certificate)
    assert subject_name(whole) == "CN=alice"
    for size in range(len(whole)):
        with pytest.raises(BadName):
            subject_name(whole[:size])
