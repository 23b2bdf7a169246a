"""A schema registry by Confluent's REST API: subjects, versions and ids, served by real HTTP."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote


class SchemaRegistry:
    """The registered schemas, and how the registry misbehaves."""

    def __init__(self) -> None:
        self.schemas: list[dict[str, Any]] = []
        """The schemas; an id is the index + 1."""
        self.subjects: dict[str, list[int]] = {}
        self.requests: list[tuple[str, str]] = []
        self.failures: list[int] = []
        """Statuses of the next answers."""
        self.user: str | None = None
        """`user:password`, without which the answer is 401."""
        self.authorizations: list[str | None] = []
        """The requests' Authorization headers."""
        self.raw: bytes | None = None
        """The body of every answer, instead of the registry's own."""
        self.redirect = ""
        """An address that every answer sends the client to."""
        self.url = ""

    def add(self, subject: str, schema: Any, kind: str = "AVRO", references: Any = ()) -> int:
        """Register a schema, and return its id."""
        entry = {
            "schema": schema if isinstance(schema, str) else json.dumps(schema),
            "references": references,
        }
        entry["schemaType"] = kind
        if entry not in self.schemas:
            self.schemas.append(entry)
        number = self.schemas.index(entry) + 1
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        parts = [unquote(part) for part in path.partition("?")[0].strip("/").split("/")]
        match method, parts:
            case "POST", ["subjects", subject, "versions"]:
                if "refused" in subject:
                    return 409, {"message": "incompatible"}
                kind, references = body.get("schemaType", "AVRO"), body.get("references") or ()
                return 200, {"id": self.add(subject, body["schema"], kind, references)}
            case "POST", ["subjects", subject]:
                for number in self.subjects.get(subject, ()):
                    if _normal(self.schemas[number - 1]["schema"]) == _normal(body["schema"]):
                        return 200, {"id": number, **self.schemas[number - 1]}
                return 404, {"message": "Schema not found"}
            case "GET", ["schemas", "ids", number] if int(number) <= len(self.schemas):
                return 200, self.schemas[int(number) - 1]
            case "GET", ["subjects", subject, "versions", version] if subject in self.subjects:
                numbers = self.subjects[subject]
                number = numbers[-1 if version == "latest" else int(version) - 1]
                return 200, {"id": number, **self.schemas[number - 1]}
        return 404, {"message": "not found"}


def _normal(text: str) -> Any:
    """Return a schema's JSON values, or its text if it is no JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text


@contextmanager
def served(tls: ssl.SSLContext | None = None) -> Iterator[SchemaRegistry]:
    """Serve a schema registry as long as the block lasts, by https with a TLS context."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.respond(None)

        def do_POST(self) -> None:
            self.respond(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def respond(self, body: Any) -> None:
            registry.requests.append((self.command, self.path))
            registry.authorizations.append(self.headers["Authorization"])
            expected = registry.user and "Basic " + base64.b64encode(registry.user.encode()).decode()
            if registry.redirect:
                self.send_response(302)
                self.send_header("Location", registry.redirect)
                self.end_headers()
                return
            if registry.failures:
                status, answer = registry.failures.pop(0), {"message": "out of order"}
            elif expected and self.headers["Authorization"] != expected:
                status, answer = 401, {"message": "who are you"}
            else:
                status, answer = registry.answer(self.command, self.path, body)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode() if registry.raw is None else registry.raw)

        def log_message(self, format: str, *args: object) -> None:
            pass

    registry = SchemaRegistry()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        registry.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
