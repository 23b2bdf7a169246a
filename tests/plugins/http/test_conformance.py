"""The HTTP source and sink pass the tests that every plugin passes."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from connect.testing.conformance import SinkConformance, SourceConformance
from plugins.http import HttpSink, HttpSource


@pytest.fixture(autouse=True)
def _closed_clients(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close the connections of tasks that a test abandons, as a crash does."""
    clients: list[httpx.Client] = []

    class Recorded(httpx.Client):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            clients.append(self)

    monkeypatch.setattr(httpx, "Client", Recorded)
    yield
    for client in clients:
        client.close()


class TestSource(SourceConformance):
    """Pages of three items, of which the API keeps all in the order of their numbers."""

    connector = HttpSource
    poll_max = 3

    @pytest.fixture
    def folder(self, tmp_path: Path, api) -> Path:
        self._api, self._items = api, []

        def answer(request):
            after = int(request.query_params["after"])
            items = [each for each in self._items if each["number"] > after]
            first = int(request.query_params.get("offset", 0))
            return items[first : first + 3]

        api.answer = answer
        return tmp_path

    def config(self, folder: Path) -> dict[str, str]:
        return {
            "topic": "items",
            "url": f"{self._api.url}/items",
            "params.after": "${offset}",
            "offset.path": "number",
            "offset.initial": "-1",
            "paging": "offset",
            "paging.size": "3",
        }

    def add(self, folder: Path, numbers: range) -> None:
        self._items += [{"number": number} for number in numbers]


class TestSink(SinkConformance):
    connector = HttpSink

    @pytest.fixture
    def folder(self, tmp_path: Path, api) -> Path:
        self._api = api
        return tmp_path

    def config(self, folder: Path) -> dict[str, str]:
        return {"url": f"{self._api.url}/in", "batch.format": "array", "batch.max.records": "4"}

    def read(self, folder: Path) -> Iterable[int]:
        return [each["number"] for body in self._api.bodies() for each in body]
