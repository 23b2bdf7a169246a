"""Ids of topics as Kafka writes them: 16 bytes in base64."""

from __future__ import annotations

import base64
import re

from millstream.kafka_tools.java.java_errors import illegal_argument

LONGEST = 24
SIZE = 16


def shown_uuid(value: bytes) -> str:
    """Return a UUID as Kafka shows it, in 22 characters of base64."""
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def parse_uuid(text: str) -> bytes:
    """Return the 16 bytes. Raises JavaError if the text has another length."""
    if len(text) > LONGEST:
        raise illegal_argument(
            f"Input string with prefix `{text[:LONGEST]}` is too long to be decoded as a base64 UUID"
        )
    if (wrong := re.search(r"[^\w-]", text, re.ASCII)) is not None:
        raise illegal_argument(f"Illegal base64 character {ord(wrong[0]):x}")
    if len(text) % 4 == 1:
        raise illegal_argument("Last unit does not have enough valid bits")
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(data) != SIZE:
        raise illegal_argument(
            f"Input string `{text}` decoded as {len(data)} bytes, which is not equal to the expected 16 "
            "bytes of a base64-encoded UUID"
        )
    return data
