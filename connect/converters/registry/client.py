"""A client of a schema registry by Confluent's REST API. Calls block; converters run in a task's thread.

POST /subjects/<subject>/versions     {"schema": text, "schemaType": kind}   register: {"id": 1}
POST /subjects/<subject>              the same                               look up:  {"id": 1, ...}
GET  /subjects/<subject>/versions/<n or latest>
GET  /schemas/ids/<id>                                                       {"schema": text, ...}
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from connect.converters.registry.requests import RegistryRequests
from connect.converters.registry.settings import RegistryConfig
from connect.errors import ConnectError

Kind = Literal["AVRO", "PROTOBUF", "JSON"]


class Reference(NamedTuple):
    """A schema that another one uses, by the name it has there."""

    name: str
    subject: str
    version: int


class RegisteredSchema(NamedTuple):
    """A schema as a registry has it."""

    id: int
    kind: str
    text: str
    references: tuple[Reference, ...]


class RegistryClient:
    """A client of a registry at several URLs."""

    def __init__(self, config: RegistryConfig, *, pause: Callable[[float], None] = time.sleep) -> None:
        """Create a client. Raises ConfigError if the TLS settings name files that cannot be used."""
        self._requests = RegistryRequests(config, pause=pause)
        self._query = "?normalize=true" if config.normalize_schemas else ""

    def register(self, subject: str, kind: Kind, text: str) -> int:
        """Add a schema to a subject, unless the subject has it, and return its id."""
        path = f"/subjects/{quote(subject, safe='')}/versions{self._query}"
        what = f"the schema cannot be registered under subject {subject}"
        return _id(self._requests.ask(what, path, _body(kind, text)))

    def id_of(self, subject: str, kind: Kind, text: str) -> int:
        """Return the id of a schema that the subject has."""
        path = f"/subjects/{quote(subject, safe='')}{self._query}"
        what = f"subject {subject} does not have the schema; register it, or set auto.register.schemas=true"
        return _id(self._requests.ask(what, path, _body(kind, text)))

    def version(self, subject: str, version: int | Literal["latest"]) -> RegisteredSchema:
        """Return the schema of a version of a subject."""
        path = f"/subjects/{quote(subject, safe='')}/versions/{version}"
        return _schema(self._requests.ask(f"version {version} of subject {subject} cannot be read", path))

    def by_id(self, schema_id: int) -> RegisteredSchema:
        """Return the schema of an id."""
        answer = self._requests.ask(f"schema {schema_id} cannot be read", f"/schemas/ids/{schema_id}")
        return _schema({**answer, "id": schema_id})


def _body(kind: Kind, text: str) -> bytes:
    return json.dumps({"schema": text} if kind == "AVRO" else {"schema": text, "schemaType": kind}).encode()


def _schema(answer: Mapping[str, Any]) -> RegisteredSchema:
    try:
        references = tuple(
            Reference(str(each["name"]), str(each["subject"]), int(each["version"]))
            for each in answer.get("references") or ()
        )
        return RegisteredSchema(
            _id(answer), answer.get("schemaType", "AVRO"), str(answer["schema"]), references
        )
    except (AttributeError, KeyError, TypeError, ValueError) as e:
        raise ConnectError(f"the schema registry's answer is not understood: {e!r}") from e


def _id(answer: Mapping[str, Any]) -> int:
    schema_id = answer.get("id")
    if not isinstance(schema_id, int) or not 0 <= schema_id < 1 << 31:
        raise ConnectError(f"the schema registry's answer has no id of a schema: {str(schema_id)[:100]}")
    return schema_id
