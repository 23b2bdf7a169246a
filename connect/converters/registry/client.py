"""A client of a schema registry by Confluent's REST API. Calls block; converters run in a task's thread.

POST /subjects/<subject>/versions     {"schema": text, "schemaType": kind}   register: {"id": 1}
POST /subjects/<subject>              the same                               look up:  {"id": 1, ...}
GET  /subjects/<subject>/versions/<n or latest>
GET  /schemas/ids/<id>                                                       {"schema": text, ...}
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

from connect.converters.registry.settings import RegistryConfig
from connect.errors import ConnectError, DataError, RetriableError

Kind = Literal["AVRO", "PROTOBUF", "JSON"]
TIMEOUT_SECONDS = 10.0
ROUNDS = 3
"""How often all URLs are tried, with pauses that double."""
_PAUSE_SECONDS = 0.2
_ANSWER_MAX = 16 << 20
"""The most bytes of an answer."""
_BUSY = (408, 429)


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
    """A client of a registry at several URLs. A URL that does not answer goes to the end of the row."""

    def __init__(self, config: RegistryConfig, *, pause: Callable[[float], None] = time.sleep) -> None:
        self._urls = [_without_user(url) for url in config.schema_registry_url]
        self._query = "?normalize=true" if config.normalize_schemas else ""
        self._headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        if config.credentials:
            encoded = base64.b64encode(config.credentials.encode()).decode()
            self._headers["Authorization"] = f"Basic {encoded}"
        self._pause = pause

    def register(self, subject: str, kind: Kind, text: str) -> int:
        """Add a schema to a subject, unless the subject has it, and return its id."""
        path = f"/subjects/{quote(subject, safe='')}/versions{self._query}"
        what = f"the schema cannot be registered under subject {subject}"
        return int(self._ask(what, path, _body(kind, text))["id"])

    def id_of(self, subject: str, kind: Kind, text: str) -> int:
        """Return the id of a schema that the subject has."""
        path = f"/subjects/{quote(subject, safe='')}{self._query}"
        what = f"subject {subject} does not have the schema; register it, or set auto.register.schemas=true"
        return int(self._ask(what, path, _body(kind, text))["id"])

    def version(self, subject: str, version: int | Literal["latest"]) -> RegisteredSchema:
        """Return the schema of a version of a subject."""
        path = f"/subjects/{quote(subject, safe='')}/versions/{version}"
        return _schema(self._ask(f"version {version} of subject {subject} cannot be read", path))

    def by_id(self, schema_id: int) -> RegisteredSchema:
        """Return the schema of an id."""
        answer = self._ask(f"schema {schema_id} cannot be read", f"/schemas/ids/{schema_id}")
        return _schema({**answer, "id": schema_id})

    def _ask(self, what: str, path: str, body: bytes | None = None) -> Mapping[str, Any]:
        """Return the registry's answer.

        Raises RetriableError if no URL answers, or all fail; DataError if the registry refuses the request;
        ConnectError if it refuses the user, or is no registry.
        """
        failure = ""
        for tried in range(ROUNDS):
            if tried:
                self._pause(_PAUSE_SECONDS * 2 ** (tried - 1))
            for url in list(self._urls):
                answer, failure = self._ask_one(what, url, path, body)
                if answer is not None:
                    return answer
                self._urls.append(self._urls.pop(0))
        raise RetriableError(f"{what}: {failure}")

    def _ask_one(
        self, what: str, url: str, path: str, body: bytes | None
    ) -> tuple[Mapping[str, Any] | None, str]:
        """Return the answer and nothing, or None and why another URL should be asked."""
        import urllib.error  # here, because its import is slow, and most workers have no registry
        import urllib.request

        request = urllib.request.Request(url + path, body, self._headers)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
                answer = json.loads(response.read(_ANSWER_MAX))
        except urllib.error.HTTPError as e:
            with e:
                words = f"{url} answers {e.code} {e.reason}{_message(e.read(_ANSWER_MAX))}"
            if e.code >= 500 or e.code in _BUSY:
                return None, words
            error = ConnectError if e.code in (401, 403) else DataError
            raise error(f"{what}: {words}") from None
        except OSError as e:
            return None, f"{url} cannot be reached: {e}"
        except ValueError:
            answer = None
        if not isinstance(answer, dict) or not {"id", "schema"} & answer.keys():
            raise ConnectError(f"{what}: {url} gives no answer of a schema registry: is the address right?")
        return answer, ""


def _without_user(url: str) -> str:
    parts = urlsplit(url.rstrip("/"))
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _body(kind: Kind, text: str) -> bytes:
    return json.dumps({"schema": text} if kind == "AVRO" else {"schema": text, "schemaType": kind}).encode()


def _schema(answer: Mapping[str, Any]) -> RegisteredSchema:
    try:
        references = tuple(
            Reference(str(each["name"]), str(each["subject"]), int(each["version"]))
            for each in answer.get("references") or ()
        )
        return RegisteredSchema(
            int(answer["id"]), answer.get("schemaType", "AVRO"), str(answer["schema"]), references
        )
    except (KeyError, TypeError, ValueError) as e:
        raise ConnectError(f"the schema registry's answer is not understood: {e!r}") from e


def _message(body: bytes) -> str:
    try:
        return f" ({json.loads(body)['message']})"
    except (ValueError, KeyError, TypeError):
        return ""
