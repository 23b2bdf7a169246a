"""A schema registry that speaks Confluent's API, asked for schemas by their numbers.

What a registry's serializers write begins with the number of its schema:

    0 │ int32: schema id │ data
"""

from __future__ import annotations

import json
import struct
import urllib.error
import urllib.request
from typing import Any

from logd.errors import MillstreamError
from millstream.data_types.data_type import WrongData

MAGIC = 0
_FRAME = struct.Struct(">bi")
_TIMEOUT_SECONDS = 10.0


class RegistryFailed(MillstreamError):
    """The registry cannot be asked, or does not have the schema."""


class Registry:
    """`schema` waits for the network: call it outside of an event loop. What was asked once is kept."""

    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/")
        self._schemas: dict[int, Any] = {}

    def schema(self, number: int) -> Any:
        """The schema's JSON; RegistryFailed."""
        if number not in self._schemas:
            self._schemas[number] = self._ask(number)
        return self._schemas[number]

    def _ask(self, number: int) -> Any:
        url = f"{self._address}/schemas/ids/{number}"
        try:
            with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise RegistryFailed(
                    f"{url}: {error.code} {error.reason}: is it the right registry?"
                ) from None
        except (OSError, ValueError) as error:
            raise RegistryFailed(f"{url}: {error}: is --schema-registry right?") from None
        if (kind := found.get("schemaType", "AVRO")) != "AVRO":
            raise RegistryFailed(f"{url}: a schema of {kind}, only Avro is read by its number")
        return json.loads(found["schema"])


def unframed(data: bytes) -> tuple[int, int]:
    """The schema's number, and where the data begins; WrongData."""
    if len(data) < _FRAME.size or data[0] != MAGIC:
        raise WrongData(f"no schema's number in front of {len(data)} bytes (0, then four bytes)")
    return int(_FRAME.unpack_from(data)[1]), _FRAME.size


def framed(number: int, data: bytes) -> bytes:
    """The data behind its schema's number."""
    return _FRAME.pack(MAGIC, number) + data
