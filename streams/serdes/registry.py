"""Schema registries: the interface for the serdes of `registered`, and a client of Confluent's REST API.

    POST /subjects/<subject>/versions   {"schema": text, "schemaType": kind}   → {"id": 1}
    GET  /schemas/ids/<id>                                                      → {"schema": text, ...}

Answers are cached, up to a bound: a schema's id never means another schema.
"""

from __future__ import annotations

import base64
import json
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from streams.errors import RegistryFailed, RegistryUnavailable

Kind = Literal["AVRO", "PROTOBUF", "JSON"]

CACHE_MAX = 1000
"""The most schemas, and the most ids, that a client caches; also the most parsed schemas of a serde."""
TIMEOUT_SECONDS = 10.0
TRIES = 4
"""The most attempts if a registry cannot be reached or fails, with pauses that double."""
_PAUSE_SECONDS = 0.2

K = TypeVar("K")
V = TypeVar("V")


class Schema(NamedTuple):
    """A schema as a registry stores it."""

    kind: Kind
    text: str


class Registry(Protocol):
    """A registry of schemas and their ids."""

    def register(self, subject: str, schema: Schema) -> int:
        """Add a schema to a subject, unless it has the schema, and return its id.

        Raises RegistryFailed or RegistryUnavailable.
        """
        ...

    def get(self, id: int) -> Schema:
        """Return the schema of an id. Raises RegistryFailed or RegistryUnavailable."""
        ...


class RegistryClient:
    """A client of a registry by its URL, which may have ``user:password@`` in front of the host.

    Calls block on the network, in the thread that runs the application's functions.
    """

    def __init__(self, url: str, *, pause: Callable[[float], None] = time.sleep) -> None:
        parts = urlsplit(url.rstrip("/"))
        user, _, place = parts.netloc.rpartition("@")
        self.url = urlunsplit(parts._replace(netloc=place))
        self._headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        if user:
            self._headers["Authorization"] = "Basic " + base64.b64encode(unquote(user).encode()).decode()
        self._pause = pause
        self._schemas: LruCache[int, Schema] = LruCache(CACHE_MAX)
        self._ids: LruCache[tuple[str, Schema], int] = LruCache(CACHE_MAX)

    def register(self, subject: str, schema: Schema) -> int:
        """Register a schema under a subject, and return its id."""
        return self._ids.get((subject, schema), self._register)

    def get(self, id: int) -> Schema:
        """Return the schema of an id."""
        return self._schemas.get(id, self._read)

    def _register(self, subject_and_schema: tuple[str, Schema]) -> int:
        subject, schema = subject_and_schema
        what = f"subject {subject!r}: its schema cannot be registered"
        body = {"schema": schema.text}
        if schema.kind != "AVRO":
            body["schemaType"] = schema.kind
        path = f"/subjects/{quote(subject, safe='')}/versions"
        return int(self._ask(path, what, "id", json.dumps(body).encode())["id"])

    def _read(self, id: int) -> Schema:
        answer = self._ask(f"/schemas/ids/{id}", f"schema {id} cannot be read", "schema")
        return Schema(answer.get("schemaType", "AVRO"), answer["schema"])

    def _ask(self, path: str, what: str, field: str, body: bytes | None = None) -> dict[str, Any]:
        import urllib.error  # here, because its import is slow, and most applications have no registry
        import urllib.request

        from streams.serdes.registry_redirects import opener

        url = self.url + path
        request = urllib.request.Request(url, body, self._headers)
        for left in reversed(range(TRIES)):
            try:
                with opener().open(request, timeout=TIMEOUT_SECONDS) as answer:
                    response = json.load(answer)
            except urllib.error.HTTPError as error:
                with error:
                    message = _message(error.read())
                if error.code >= 500 and left:
                    self._pause(_PAUSE_SECONDS * 2 ** (TRIES - 1 - left))
                    continue
                refusal = (
                    RegistryUnavailable if error.code >= 500 or error.code in (401, 403) else RegistryFailed
                )
                raise refusal(f"{what}: {url} answers {error.code} {error.reason}{message}") from None
            except OSError as error:
                if left:
                    self._pause(_PAUSE_SECONDS * 2 ** (TRIES - 1 - left))
                    continue
                raise RegistryUnavailable(
                    f"{what}: {url} cannot be reached ({error}): is the address right, and does it run?"
                ) from None
            except ValueError:
                response = None
            if isinstance(response, dict) and field in response:
                return response
            raise RegistryUnavailable(f"{what}: {url} gives no answer of a registry: is the address right?")
        raise AssertionError("the last try returns or raises")


class LruCache(Generic[K, V]):
    """The values used last, up to ``most``."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K, make: Callable[[K], V]) -> V:
        """Return the value of a key; if it is missing, ``make`` it and drop the value unused for longest."""
        values = self._values
        if key in values:
            values.move_to_end(key)
            return values[key]
        value = values[key] = make(key)
        if len(values) > self._most:
            values.popitem(last=False)
        return value


def _message(body: bytes) -> str:
    try:
        return f" ({json.loads(body)['message']})"
    except (ValueError, KeyError, TypeError):
        return ""
