"""RemoteWorker: a worker that the command line asks over REST."""

from __future__ import annotations

import base64
import http.client
import json
import os
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import typer

from connect.errors import MillstreamError
from kafka_client.http.client import HttpClient

DEFAULT_URL = "http://localhost:8083"
URL_VARIABLE = "MILLSTREAM_CONNECT_URL"
AUTH_VARIABLE = "MILLSTREAM_CONNECT_AUTH"
CA_VARIABLE = "MILLSTREAM_CONNECT_CA"
TIMEOUT_SECONDS = 100.0
"""Time for an answer: Kafka's workers answer 500 after 90 seconds."""

Url = Annotated[
    str,
    typer.Option(
        envvar=URL_VARIABLE,
        help=f"REST address of a worker; {AUTH_VARIABLE} may hold user:password, {CA_VARIABLE} a PEM file",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="print the worker's JSON")]
Names = Annotated[list[str], typer.Argument(metavar="NAME...", help="connectors")]


class Refused(MillstreamError):
    """A worker's answer with an error status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{message} (HTTP {status})")
        self.status = status
        self.message = message


class RemoteWorker:
    """A worker at a REST address. Its methods raise Refused, or MillstreamError if it does not answer."""

    def __init__(self, url: str, environment: Mapping[str, str] = os.environ) -> None:
        self._url = url.rstrip("/")
        authority = environment.get(CA_VARIABLE)
        try:
            tls = ssl.create_default_context(cafile=authority) if url.startswith("https") else None
        except OSError as e:
            raise MillstreamError(f"{CA_VARIABLE}={authority} cannot be read: {e}") from e
        self._client = HttpClient(timeout=TIMEOUT_SECONDS, tls=tls)
        self._headers = {"content-type": "application/json", "accept": "application/json"}
        if auth := environment.get(AUTH_VARIABLE):
            self._headers["authorization"] = f"Basic {base64.b64encode(auth.encode()).decode()}"

    def call(self, method: str, *path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        """Send a request to the path of these segments. Return the answer's document, None without one."""
        url = "/".join((self._url, *(quote(part, safe="") for part in path)))
        if query:
            url += "?" + urlencode(query, doseq=True)
        content = None if body is None else json.dumps(body).encode()
        try:
            answer = self._client.request(method, url, content, self._headers)
        except (OSError, ValueError, http.client.HTTPException) as e:
            raise MillstreamError(
                f"no worker answers at {self._url} ({e or type(e).__name__}): start one, or give --url"
            ) from e
        document = _document(answer.body, answer.status)
        if answer.status >= 400:
            text = document.get("message") if isinstance(document, dict) else None
            raise Refused(answer.status, str(text or answer.body.decode("utf-8", "replace")[:500]))
        return document

    def config(self, name: str) -> dict[str, str] | None:
        """Return a connector's config, or None if there is no such connector."""
        try:
            return dict(self.call("GET", "connectors", name, "config"))
        except Refused as e:
            if e.status == 404:
                return None
            raise

    def each(self, names: list[str], act: Callable[[str], Any], verb: str) -> None:
        """Do something to each connector and print that it is done; go on behind one that is refused.

        Ends the command with exit status 1 if one was refused.
        """
        failed = False
        for name in names:
            try:
                act(name)
            except Refused as e:
                failed = True
                typer.echo(f"millstream connect: {name}: {e}", err=True)
            else:
                typer.echo(f"{name} {verb}")
        if failed:
            raise typer.Exit(1)


def _document(body: bytes, status: int) -> Any:
    try:
        return json.loads(body) if body.strip() else None
    except ValueError as e:
        if status >= 400:
            return None
        raise MillstreamError(
            f"the answer is not JSON: {body[:100]!r}; is this the address of a worker?"
        ) from e


@contextmanager
def told_errors() -> Iterator[None]:
    """Print the body's MillstreamError, and end with exit status 1 for a refusal, else 2."""
    try:
        yield
    except MillstreamError as e:
        typer.echo(f"millstream connect: {e}", err=True)
        raise typer.Exit(1 if isinstance(e, Refused) else 2) from e
