"""A schema registry by Confluent's API, which answers what a test has it answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NEW = 301
"""The number of whatever is registered; under a subject with "refused" in its name nothing is."""


class StandInRegistry:
    """A schema registry with `answers` by path, to which a test may add.

    `posted` are registered paths and schemas.
    """

    def __init__(self, address: str, answers: Mapping[str, object]) -> None:
        self.address = address
        self.answers = dict(answers)
        self.posted: list[tuple[str, object]] = []
        self.authorization: str | None = None
        """The Authorization header of the last GET request."""


@contextmanager
def asked_registry(answers: Mapping[str, object]) -> Iterator[StandInRegistry]:
    """Serve a schema registry as long as the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.authorization = self.headers["Authorization"]
            self.answer(registry.answers.get(self.path))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            text = body["schema"]
            schema = text if body.get("schemaType") == "PROTOBUF" else json.loads(text)
            registry.posted.append((self.path, schema))
            self.answer({"id": NEW} if "refused" not in self.path else None, "Schema being registered is bad")

        def answer(self, body: object, message: str = "not found") -> None:
            data = json.dumps({"error_code": 409, "message": message} if body is None else body).encode()
            self.send_response(404 if body is None else 200)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        registry = StandInRegistry(f"http://127.0.0.1:{server.server_port}", answers)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
