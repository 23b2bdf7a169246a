"""Schema registries: what the serdes of `registered` ask of one, and a client of Confluent's REST API.

    POST /subjects/<subject>/versions   {"schema": text, "schemaType": kind}   → {"id": 1}
    GET  /schemas/ids/<id>                                                      → {"schema": text, ...}

What was asked once is kept, up to a bound: a schema's id never means another schema.
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
"""Schemas that a client keeps, and as many ids; a serde keeps as many parsed ones."""
TIMEOUT_SECONDS = 10.0
TRIES = 4
"""So often a registry is asked that cannot be reached or has an error of its own, with pauses that double."""
_PAUSE_SECONDS = 0.2

K = TypeVar("K")
V = TypeVar("V")


class Schema(NamedTuple):
    """A schema as a registry keeps it."""

    kind: Kind
    text: str


class Registry(Protocol):
    """What knows schemas by their ids."""

    def register(self, subject: str, schema: Schema) -> int:
        """The id of a schema, which is among the subject's from now on; RegistryFailed."""
        ...

    def get(self, id: int) -> Schema:
        """The schema of an id; RegistryFailed, RegistryUnavailable."""
        ...


class RegistryClient:
    """A registry by its URL, with ``user:password@`` in front of the host where it asks for them.

    Calls wait for the network, in the thread that runs the application's functions.
    """

    def __init__(self, url: str, *, pause: Callable[[float], None] = time.sleep) -> None:
        parts = urlsplit(url.rstrip("/"))
        user, _, place = parts.netloc.rpartition("@")
        self.url = urlunsplit(parts._replace(netloc=place))
        self._headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        if user:
            self._headers["Authorization"] = "Basic " + base64.b64encode(unquote(user).encode()).decode()
        self._pause = pause
        self._schemas: Kept[int, Schema] = Kept(CACHE_MAX)
        self._ids: Kept[tuple[str, Schema], int] = Kept(CACHE_MAX)

    def register(self, subject: str, schema: Schema) -> int:
        """The id of a schema, which is among the subject's from now on."""
        return self._ids.get((subject, schema), self._registered)

    def get(self, id: int) -> Schema:
        """The schema of an id."""
        return self._schemas.get(id, self._read)

    def _registered(self, asked: tuple[str, Schema]) -> int:
        subject, schema = asked
        what = f"subject {subject!r}: its schema cannot be registered"
        body = {"schema": schema.text}
        if schema.kind != "AVRO":
            body["schemaType"] = schema.kind
        path = f"/subjects/{quote(subject, safe='')}/versions"
        return int(self._ask(path, what, "id", json.dumps(body).encode())["id"])

    def _read(self, id: int) -> Schema:
        answer = self._ask(f"/schemas/ids/{id}", f"schema {id} cannot be read", "schema")
        return Schema(answer.get("schemaType", "AVRO"), answer["schema"])

    def _ask(self, path: str, what: str, wanted: str, body: bytes | None = None) -> dict[str, Any]:
        import urllib.error  # here, for whom no registry is asked need not wait for it
        import urllib.request

        url = self.url + path
        request = urllib.request.Request(url, body, self._headers)
        for left in reversed(range(TRIES)):
            try:
                with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
                    found = json.load(answer)
            except urllib.error.HTTPError as error:
                with error:
                    told = _told(error.read())
                if error.code >= 500 and left:
                    self._pause(_PAUSE_SECONDS * 2 ** (TRIES - 1 - left))
                    continue
                refusal = (
                    RegistryUnavailable if error.code >= 500 or error.code in (401, 403) else RegistryFailed
                )
                raise refusal(f"{what}: {url} answers {error.code} {error.reason}{told}") from None
            except OSError as error:
                if left:
                    self._pause(_PAUSE_SECONDS * 2 ** (TRIES - 1 - left))
                    continue
                raise RegistryUnavailable(
                    f"{what}: {url} cannot be reached ({error}): is the address right, and does it run?"
                ) from None
            except ValueError:
                found = None
            if isinstance(found, dict) and wanted in found:
                return found
            raise RegistryUnavailable(f"{what}: {url} gives no answer of a registry: is the address right?")
        raise AssertionError("the last try returns or raises")


class Kept(Generic[K, V]):
    """The values last asked for, up to so many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K, make: Callable[[K], V]) -> V:
        """The value, made now if it is not there."""
        values = self._values
        if key in values:
            values.move_to_end(key)
            return values[key]
        value = values[key] = make(key)
        if len(values) > self._most:
            values.popitem(last=False)
        return value


def _told(body: bytes) -> str:
    try:
        return f" ({json.loads(body)['message']})"
    except (ValueError, KeyError, TypeError):
        return ""
