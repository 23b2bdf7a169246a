"""An application's HTTP view against a real server: what it tells, what it answers, and what it refuses."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import httpx
import pytest

from kafka_client.errors import MillstreamError
from streams import KafkaStreams, Materialized, StreamsBuilder
from streams.config import StreamsConfig
from streams.errors import InvalidStateStore
from streams.http import forwarding
from streams.http.health import liveness, readiness
from streams.http.text import BadRequest, place, read_key, read_number, read_place, to_json
from streams.queries import HostInfo
from streams.runtime.status import State
from streams.serdes import serde_for
from streams.tools.workers import config_of
from tests.streams.queries.test_queries import counting, send
from tests.streams.support.running import NewName, make_topics, start
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess

ANYWHERE = {"http_listener": "127.0.0.1:0"}


def client(app: KafkaStreams) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"http://{app.host}", timeout=20, trust_env=False)


@asynccontextmanager
async def served(
    logd: LogdProcess, name: str, folder: Path, **settings: Any
) -> AsyncIterator[tuple[KafkaStreams, httpx.AsyncClient]]:
    """Yield an application that has counted a few records of two partitions, and an HTTP client to it."""
    await make_topics(logd.bootstrap, **{f"{name}-in": 2})
    await send(logd.bootstrap, f"{name}-in", ("a", 1), ("b", 2), ("a", 12), ("x/y ü", 13))
    await send(logd.bootstrap, f"{name}-in", ("d", 30), partition=1)
    app = start(counting(name), logd.bootstrap, name, folder, **ANYWHERE, **settings)
    async with app, client(app) as http:
        await app.wait_until_caught_up()
        yield app, http


@deep
async def test_the_view_tells_how_the_application_is(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name = new_name("told")
    async with served(logd, name, tmp_path) as (app, http):
        page = await http.get("/")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert page.headers["content-security-policy"].startswith("default-src 'none'")
        assert f"<h1>{name}: RUNNING</h1>" in page.text
        assert "<svg" in page.text
        assert not re.search(r"""\b(src|href)\s*=|url\((?!#)|@import|<script|<link""", page.text)
        assert [(await http.get(path)).status_code for path in ("/livez", "/readyz")] == [200, 200]
        status = (await http.get("/status")).json()
        assert status["state"] == "RUNNING"
        assert status["host"] == str(app.host)
        assert (status["lag"], status["records_in"], status["tasks"]) == (0, 5, ["0_0", "0_1"])
        tasks = (await http.get("/tasks")).json()
        assert [(each["task"], each["role"], each["stream_time"]) for each in tasks] == [
            ("0_0", "active", 13),
            ("0_1", "active", 30),
        ]
        assert (await http.get("/lag")).json()["inputs"][0] == {
            "input": f"{name}-in-0",
            "position": 4,
            "end": 4,
            "lag": 0,
        }
        assert (await http.get("/restore")).json() == {"remaining": 0, "tasks": []}
        assert (await http.get("/topology")).json() == app.topology.outline()
        assert (await http.get("/topology?format=text")).text == app.topology.describe()
        assert (await http.get("/topology?format=svg")).headers["content-type"] == "image/svg+xml"
        assert (await http.get("/topology?format=mermaid")).text == app.topology.mermaid()
        (metadata,) = (await http.get("/metadata")).json()
        assert (metadata["host"], metadata["tasks"]) == (str(app.host), ["0_0", "0_1"])
        assert {each["name"]: each["kind"] for each in (await http.get("/stores")).json()} == {
            "counts": "key_value",
            "sessions": "session",
            "windows": "window",
        }
        metrics = await http.get("/metrics")
        assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert "kafka_streams_stream_metrics_client_state" in metrics.text


@deep
async def test_stores_are_queried_by_key_and_by_range(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name = new_name("asked")
    async with served(logd, name, tmp_path) as (app, http):
        answer = (await http.get("/stores/counts/a")).json()
        assert answer == {
            "store": "counts",
            "key": "a",
            "value": 2,
            "timestamp": 12,
            "partition": 0,
            "active": True,
            "position": {f"{name}-in": {"0": 3}},
            "answered_by": str(app.host),
        }
        assert (await http.get("/stores/counts/x%2Fy%20%C3%BC")).json()["value"] == 1
        missing = await http.get("/stores/counts/z")
        assert (missing.status_code, missing.json()["message"]) == (
            404,
            "store counts has no key 'z'",
        )
        first = (await http.get("/stores/counts?limit=3")).json()
        assert [(row["key"], row["value"]) for row in first["rows"]] == [("a", 2), ("b", 1), ("x/y ü", 1)]
        rest = (await http.get("/stores/counts", params={"limit": 3, "next": first["next"]})).json()
        assert ([row["key"] for row in rest["rows"]], rest["next"]) == (["d"], None)
        some = (await http.get("/stores/counts?lower=b&upper=e")).json()
        assert [row["key"] for row in some["rows"]] == ["b", "d"]
        last = (await http.get("/stores/counts?descending=true&limit=2")).json()
        assert [row["key"] for row in last["rows"]] == ["x/y ü", "b"]
        more = (await http.get("/stores/counts", params={"next": last["next"], "descending": "true"})).json()
        assert [row["key"] for row in more["rows"]] == ["a", "d"], "the next partition's behind it"
        windows = (await http.get("/stores/windows/a?from=10&to=10")).json()["rows"]
        assert windows == [{"key": "a", "value": 1, "timestamp": 12, "window": {"start": 10, "end": 20}}]
        one = (await http.get("/stores/windows/a?limit=1")).json()
        two = (await http.get("/stores/windows/a", params={"limit": 1, "next": one["next"]})).json()
        assert [each["rows"][0]["window"]["start"] for each in (one, two)] == [0, 10]
        sessions = (await http.get("/stores/sessions?from=13")).json()["rows"]
        assert [(row["key"], row["window"]["start"]) for row in sessions] == [("x/y ü", 13), ("d", 30)]
        beyond = f'{{"{name}-in": {{"0": 9}}}}'
        refused = await http.get("/stores/counts/a", params={"position": beyond})
        assert refused.status_code == 503
        assert "is at offset 3" in refused.json()["message"]


@deep
async def test_a_versioned_store_is_asked_for_what_was(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name = new_name("versions")
    builder = StreamsBuilder(key_serde=str, value_serde=bytes)
    builder.table(f"{name}-in", store=Materialized(name="prices", history_retention=1000))
    await make_topics(logd.bootstrap, **{f"{name}-in": 1})
    await send(logd.bootstrap, f"{name}-in", ("a", 10), ("a", 20), ("b", 30))
    async with (
        start(builder.build(), logd.bootstrap, name, tmp_path, **ANYWHERE) as app,
        client(app) as http,
    ):
        await app.wait_until_caught_up()
        latest = (await http.get("/stores/prices/a")).json()
        assert (latest["timestamp"], latest["valid_to"]) == (20, None)
        then = (await http.get("/stores/prices/a?as_of=19")).json()
        assert (then["timestamp"], then["valid_to"]) == (10, 20)
        assert (await http.get("/stores/prices/a?as_of=9")).status_code == 404
        both = (await http.get("/stores/prices/a?from=0&to=25")).json()["versions"]
        assert [(each["timestamp"], each["valid_to"]) for each in both] == [(20, None), (10, 20)]
        one = (await http.get("/stores/prices/a?limit=1")).json()["versions"]
        assert one == both[:1]
        refused = await http.get("/stores/prices")
        assert refused.status_code == 400
        assert "ask for a VersionedKeyQuery" in refused.json()["message"]
        with pytest.raises(InvalidStateStore, match=r"has no view: ask app.query\(\)"):
            app.store("prices")


@deep
async def test_what_makes_no_sense_is_refused_with_the_remedy(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name = new_name("nonsense")
    async with served(logd, name, tmp_path) as (_, http):
        for path, status, message in [
            ("/nothing", 404, "GET /nothing: Not Found"),
            ("/stores/count/a", 404, "no store is named 'count'"),
            ("/stores/counts?limit=100000", 400, "limit=100000: a whole number from 1 to 1000"),
            ("/stores/counts?limit=0", 400, "from 1 to 1000"),
            ("/stores/counts?next=zzz", 400, "next=zzz: give what an answer had as its next"),
            ("/stores/counts/a?stale=yes", 400, "stale=yes: true or false"),
            ("/stores/counts/a?position=9", 400, "is none"),
            (
                "/stores/counts/a?partition=7&local=true",
                503,
                "partition 7 of store counts is not in this",
            ),
            ("/stores/counts/a?partition=7", 503, "no instance is known to run its task"),
            ("/topology?format=gif", 400, "json, text, mermaid or svg"),
        ]:
            response = await http.get(path)
            assert (path, response.status_code) == (path, status)
            assert response.json()["error_code"] == status
            assert message in response.json()["message"]
        assert (await http.post("/status")).status_code == 405


@deep
async def test_a_port_that_is_taken_ends_the_start(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name = new_name("taken")
    await make_topics(logd.bootstrap, **{f"{name}-in": 1})
    with socket.create_server(("127.0.0.1", 0)) as other:
        listener = f"127.0.0.1:{other.getsockname()[1]}"
        app = start(counting(name), logd.bootstrap, name, tmp_path, http_listener=listener)
        with pytest.raises(MillstreamError, match=f"cannot listen on {listener} for HTTP.*port 0"):
            await app.start()


async def test_one_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "FORWARD_SECONDS", 0.05)
    unused: Any = SimpleNamespace(host=None)
    asking = forwarding.Forwarding(unused)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = HostInfo("127.0.0.1", silent.getsockname()[1])
        with pytest.raises(forwarding.Unreachable, match=f"{host} does not answer"):
            await asking.get(host, "/stores/counts/a", {})
    with pytest.raises(forwarding.Unreachable, match=f"{host} does not answer.*refused"):
        await asking.get(host, "/stores/counts/a", {})
    asking.close()


@pytest.mark.parametrize(
    ("type", "text", "key"),
    [
        (str, "a b", "a b"),
        (int, "-7", -7),
        (float, "1.5", 1.5),
        (bool, "true", True),
        (bytes, "AAE=", b"\x00\x01"),
        (UUID, "12345678-1234-5678-1234-567812345678", UUID("12345678123456781234567812345678")),
        (dict, '{"a": 1}', {"a": 1}),
    ],
)
def test_keys_are_read_as_their_serdes_take_them(type: Any, text: str, key: Any) -> None:
    serde = serde_for(type)
    assert serde is not None
    assert read_key(text, serde) == key


@pytest.mark.parametrize(
    ("type", "text"), [(int, "seven"), (int, str(2**63)), (bool, "yes"), (bytes, "%%"), (dict, "{")]
)
def test_what_is_no_key_is_refused(type: Any, text: str) -> None:
    serde = serde_for(type)
    assert serde is not None
    with pytest.raises(BadRequest, match=f"is no key of type {serde.__class__.__name__}"):
        read_key(text, serde)


def test_values_without_a_json_form_are_told_as_python_writes_them() -> None:
    assert to_json({"raw": b"\x00", "odd": 1j}) == b'{"raw":"AA==","odd":"1j"}'


def test_places_are_read_back() -> None:
    assert read_place(place(3, b"\xff\xfe\x00")) == (3, b"\xff\xfe\x00")
    assert read_place(place(3, None)) == (3, None)
    assert read_number("limit", None, 7, least=1, most=9) == 7


def test_an_application_is_live_unless_it_has_failed_and_ready_while_it_runs() -> None:
    def problems(state: State) -> tuple[bool, bool]:
        app: Any = SimpleNamespace(state=state)
        return liveness(app) is None, readiness(app) is None

    assert {state: problems(state) for state in State} == {
        State.CREATED: (True, False),
        State.REBALANCING: (True, False),
        State.RUNNING: (True, True),
        State.PENDING_SHUTDOWN: (True, False),
        State.NOT_RUNNING: (False, False),
        State.PENDING_ERROR: (False, False),
        State.ERROR: (False, False),
    }


def test_each_worker_has_a_port_of_its_own() -> None:
    config = StreamsConfig(
        application_id="app",
        bootstrap_servers="h:1",
        http_listener="127.0.0.1:7070",
        application_server="h:80",
    )
    second = config_of(config, 2)
    assert (second.http_listener, second.application_server) == ("127.0.0.1:7072", "h:82")
    free = config_of(StreamsConfig(application_id="a", bootstrap_servers="h:1", **ANYWHERE), 2)  # type: ignore[arg-type]
    assert (free.http_listener, free.application_server) == ("127.0.0.1:0", "")


@deep
def test_without_a_view_nothing_of_it_is_imported() -> None:
    """The view's packages are not imported, in a new process: this one has imported all of them."""
    code = "import sys, streams, streams.queries; print({'starlette', 'uvicorn'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"
