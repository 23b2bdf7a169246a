"""A schema registry with Confluent's API: schemas by id, the newest of a subject, and new ones.

The serializers of a registry prefix the data with the schema id:

0 │ int32: schema id │ data
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from kafka_client.errors import MillstreamError
from millstream.data_types.data_type import WrongData

MAGIC = 0
_FRAME = struct.Struct(">bi")
_TIMEOUT_SECONDS = 10.0
_CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
_SERIALIZED = "?format=serialized"


class RegistryFailed(MillstreamError):
    """The registry cannot be reached, does not have the schema, or refuses it."""


class Reference(NamedTuple):
    """A schema that another one imports."""

    name: str
    """The name in the importing schema; for Protobuf the imported file."""
    subject: str
    version: int


class File(NamedTuple):
    """A Protobuf file, compiled."""

    name: str
    data: bytes
    """A FileDescriptorProto."""


class Registry:
    """A client of a registry, which caches answers. Its methods block: call them outside of an event loop."""

    def __init__(self, address: str) -> None:
        """Make a client of the registry at a URL, with `user:password@` if it needs credentials."""
        parts = urlsplit(address.rstrip("/"))
        user, _, place = parts.netloc.rpartition("@")
        self._address = urlunsplit(parts._replace(netloc=place))
        self._headers = {"Content-Type": _CONTENT_TYPE}
        if user:
            self._headers["Authorization"] = "Basic " + base64.b64encode(unquote(user).encode()).decode()
        self._answers: dict[str, Any] = {}

    def schema(self, number: int) -> Any:
        """Return an Avro schema's JSON. Raises RegistryFailed."""
        return json.loads(self._of_kind(f"/schemas/ids/{number}", "AVRO")["schema"])

    def newest(self, subject: str) -> int:
        """Return the id of a subject's newest schema. Raises RegistryFailed."""
        return int(self._answer(f"/subjects/{quote(subject, safe='')}/versions/latest")["id"])

    def register(self, subject: str, schema: Any) -> int:
        """Register an Avro schema as the subject's newest and return its id.

        Raises RegistryFailed, for example if the schema is not compatible with the one before.
        """
        body = json.dumps({"schema": json.dumps(schema)}).encode()
        return int(self._ask(f"/subjects/{quote(subject, safe='')}/versions", body)["id"])

    def files(self, number: int) -> Sequence[File]:
        """Return the files of a Protobuf schema, imports first. Raises RegistryFailed."""
        collected: dict[str, File] = {}
        self._collect(f"/schemas/ids/{number}", "", collected)
        return list(collected.values())

    def _collect(self, path: str, name: str, collected: dict[str, File]) -> None:
        answer = self._of_kind(path + _SERIALIZED, "PROTOBUF")
        for each in answer.get("references") or ():
            reference = Reference(each["name"], each["subject"], each["version"])
            if reference.name not in collected:
                place = f"/subjects/{quote(reference.subject, safe='')}/versions/{reference.version}"
                self._collect(place, reference.name, collected)
        try:
            collected[name] = File(name, base64.b64decode(answer["schema"], validate=True))
        except binascii.Error:
            raise RegistryFailed(
                f"{self._address}{path}: it does not serve Protobuf compiled (?format=serialized); give the "
                "descriptors in a file, without the registry"
            ) from None

    def _of_kind(self, path: str, expected: str) -> Mapping[str, Any]:
        answer = self._answer(path)
        if (kind := answer.get("schemaType", "AVRO")) != expected:
            raise RegistryFailed(f"{self._address}{path}: a schema of {kind}, not of {expected}")
        return answer

    def _answer(self, path: str) -> Mapping[str, Any]:
        if path not in self._answers:
            self._answers[path] = self._ask(path)
        answer: Mapping[str, Any] = self._answers[path]
        return answer

    def _ask(self, path: str, body: bytes | None = None) -> Mapping[str, Any]:
        url = self._address + path
        request = urllib.request.Request(url, body, self._headers)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
                decoded = json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                message = _message_of(error.read())
            raise RegistryFailed(
                f"{url}: {error.code} {error.reason}{message}: is it the right registry?"
            ) from None
        except (OSError, ValueError) as error:
            raise RegistryFailed(f"{url}: {error}: is --schema-registry right?") from None
        if not isinstance(decoded, dict):
            raise RegistryFailed(f"{url}: no answer of a registry: is --schema-registry right?")
        return decoded


def _message_of(body: bytes) -> str:
    """Return the error message in a registry's response, in parentheses; empty without one."""
    try:
        return f" ({json.loads(body)['message']})"
    except (ValueError, KeyError, TypeError):
        return ""


def unframed(data: bytes) -> tuple[int, int]:
    """Return the schema id and the position of the data. Raises WrongData without a schema id."""
    if len(data) < _FRAME.size or data[0] != MAGIC:
        raise WrongData(f"no schema's number in front of {len(data)} bytes (0, then four bytes)")
    return int(_FRAME.unpack_from(data)[1]), _FRAME.size


def framed(number: int, data: bytes) -> bytes:
    """Return the data after its schema id."""
    return _FRAME.pack(MAGIC, number) + data
