"""The distinguished name of a certificate's subject, as Java writes it (RFC 2253, X500Principal.getName).

    Certificate     ::= SEQUENCE { TBSCertificate, ... }
    TBSCertificate  ::= SEQUENCE { [0] version, serial, algorithm, issuer, validity, subject, ... }
    Name            ::= SEQUENCE OF SET OF SEQUENCE { type OBJECT IDENTIFIER, value }

The last part of the name comes first. TLS has checked the certificate before; ACLs and super users name
principals in this form.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_SEQUENCE, _SET, _OID = 0x30, 0x31, 0x06
_VERSION: Final = 0xA0
_FIELDS_BEFORE_SUBJECT: Final = 4
_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
# UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString
_TEXTS: Final = frozenset((0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E))
_ESCAPED: Final = frozenset(',=+<>#;"\\')


class BadName(ValueError):
    """A certificate whose subject cannot be read."""


def subject_name(certificate: bytes) -> str:
    """Return the name of a certificate in DER. Raises BadName."""
    fields = _elements(_only(_only(certificate, _SEQUENCE, whole=True), _SEQUENCE))
    skipped = 0
    for tag, content in fields:
        if tag == _VERSION:
            continue
        if skipped == _FIELDS_BEFORE_SUBJECT:
            parts = [_part(part) for kind, part in _elements(content) if kind == _SET]
            return ",".join(reversed(parts))
        skipped += 1
    raise BadName("the certificate has no subject")


def _part(content: bytes) -> str:
    return "+".join(_attribute(attribute) for tag, attribute in _elements(content) if tag == _SEQUENCE)


def _attribute(content: bytes) -> str:
    elements = list(_elements(content))
    if len(elements) != 2 or elements[0][0] != _OID:
        raise BadName("an attribute of the certificate's subject has no type and value")
    (_, type_), (tag, value) = elements
    dotted = _dotted(type_)
    keyword = _KEYWORDS.get(dotted)
    if keyword is None or tag not in _TEXTS:
        return f"{keyword or dotted}=#{_encoded(tag, value).hex()}"
    try:
        # Java, too, takes all types of text as UTF-8; it replaces what it cannot decode.
        return f"{keyword}={_escaped(value.decode())}"
    except UnicodeDecodeError:
        raise BadName(f"{keyword} of the certificate's subject cannot be decoded") from None


def _escaped(text: str) -> str:
    """Return a value with escaped special characters, and spaces at its ends."""
    middle = text.strip(" ")
    if not middle:
        return "\\ " * len(text)
    before = len(text) - len(text.lstrip(" "))
    after = len(text) - len(text.rstrip(" "))
    escaped = "".join("\\" + each if each in _ESCAPED else each for each in middle).replace("\0", "\\00")
    return "\\ " * before + escaped + "\\ " * after


def _elements(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield tag and content of each element. Raises BadName."""
    pos = 0
    while pos < len(content):
        tag, start, end = _header(content, pos)
        yield tag, content[start:end]
        pos = end


def _only(content: bytes, tag: int, *, whole: bool = False) -> bytes:
    """Return the content of the first element, which must have this tag, and be alone if `whole`."""
    first, start, end = _header(content, 0)
    if first != tag or (whole and end != len(content)):
        raise BadName("the certificate is not in DER")
    return content[start:end]


def _header(content: bytes, pos: int) -> tuple[int, int, int]:
    """Return an element's tag, and where its content begins and ends."""
    try:
        tag, length = content[pos], content[pos + 1]
    except IndexError:
        raise BadName("the certificate ends in the middle of an element") from None
    start = pos + 2
    if length & 0x80:
        size = length & 0x7F
        start += size
        length = int.from_bytes(content[pos + 2 : start], "big")
    if start + length > len(content):
        raise BadName("the certificate ends in the middle of an element")
    return tag, start, start + length


def _encoded(tag: int, value: bytes) -> bytes:
    """Return an element in DER."""
    length = len(value)
    if length < 0x80:
        return bytes((tag, length)) + value
    size = (length.bit_length() + 7) // 8
    return bytes((tag, 0x80 | size)) + length.to_bytes(size, "big") + value


def _dotted(content: bytes) -> str:
    """Return an object identifier as text."""
    numbers: list[int] = []
    number = 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    if not numbers:
        raise BadName("an attribute of the certificate's subject has no type")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))
