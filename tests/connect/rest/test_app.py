"""Paths, status codes, documents and headers, as a Java worker of 4.4 answers (see test_against_java)."""

from __future__ import annotations

import asyncio
import logging

import pytest

from connect.errors import NotLeader, Rebalancing
from connect.herder import TargetState
from connect.rest.app import routes_of
from connect.rest.bodies import BODY_MAX
from connect.rest.openapi import OPERATIONS, document
from tests.connect.rest.conftest import CONFIG, Opening, parts_of
from tests.connect.rest.fake_service import FakeService


async def test_a_connector_is_created_changed_and_deleted(opened: Opening, service: FakeService) -> None:
    async with opened() as client:
        created = await client.post("/connectors", json={"name": " a ", "config": {**CONFIG, "limit": 7}})
        assert created.status_code == 201
        assert created.headers["location"] == "http://worker:8083/connectors/a"
        assert created.json()["config"] == {**CONFIG, "limit": "7", "name": "a"}
        assert (await client.get("/connectors/")).json() == ["a"]
        assert (await client.put("/connectors/a/config", json=CONFIG)).status_code == 200
        assert (await client.put("/connectors/b/config", json=CONFIG)).status_code == 201
        patched = await client.patch("/connectors/b/config", json={"topic": None, "flag": True})
        assert patched.json()["config"] == {"connector.class": "Counting", "flag": "true", "name": "b"}
        assert (await client.get("/connectors/b/config")).json() == patched.json()["config"]
        deleted = await client.delete("/connectors/a")
        assert (deleted.status_code, deleted.content) == (204, b"")
        missing = await client.get("/connectors/a")
        assert missing.json() == {"error_code": 404, "message": "Connector a not found"}


async def test_a_connector_may_be_created_paused_or_stopped(opened: Opening, service: FakeService) -> None:
    async with opened() as client:
        for state in ("paused", "STOPPED"):
            body = {"name": state, "config": CONFIG, "initial_state": state}
            assert (await client.post("/connectors", json=body)).status_code == 201
        body = {"name": "x", "config": CONFIG, "initial_state": "asleep"}
        assert (await client.post("/connectors", json=body)).status_code == 400
    assert service.calls == [
        ("create", "paused", TargetState.PAUSED),
        ("create", "STOPPED", TargetState.STOPPED),
    ]


async def test_an_existing_connector_is_a_conflict(opened: Opening) -> None:
    async with opened() as client:
        body = {"name": "a", "config": CONFIG}
        await client.post("/connectors", json=body)
        answer = await client.post("/connectors", json=body)
        assert answer.json() == {"error_code": 409, "message": "Connector a already exists"}


async def test_documents_are_expanded(opened: Opening) -> None:
    async with opened() as client:
        await client.post("/connectors", json={"name": "a", "config": CONFIG})
        both = (await client.get("/connectors?expand=status&expand=info")).json()
        assert both["a"].keys() == {"status", "info"}
        assert (await client.get("/connectors?expand=other")).json() == {"a": {}}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"name": "b"}, "The field config is missing"),
        ({"name": "b", "config": [1]}, "The field config must be a JSON object"),
        ({"name": 1, "config": CONFIG}, "The field name must be a text"),
        ({"name": "b", "config": {**CONFIG, "x": {}, "y": None}}, "The values of x, y must be"),
        ({"name": "b", "config": CONFIG, "extra": 1}, "Unknown field 'extra'"),
        ({"name": "b", "config": {"topic": "t"}}, "Connector config contains no connector type"),
        (
            {"name": "b", "config": {**CONFIG, "name": "c"}},
            "Connector name configuration (c) doesn't match connector name in the URL (b)",
        ),
        (
            {"name": "b", "config": {**CONFIG, "limit": "x"}},
            "Connector configuration is invalid and contains the following 1 error(s):\n"
            "Invalid value for configuration limit\nYou can also find the above list of errors "
            "at the endpoint `/connector-plugins/{connectorType}/config/validate`",
        ),
        ([], "The body must be a JSON object"),
    ],
)
async def test_a_bad_request_is_told(
    opened: Opening, service: FakeService, body: object, message: str
) -> None:
    async with opened() as client:
        answer = await client.post("/connectors", json=body)
    assert answer.status_code == answer.json()["error_code"] == 400
    assert message in answer.json()["message"]
    assert service.configs == {}


async def test_bodies_are_json_of_bounded_size(opened: Opening) -> None:
    headers = {"content-type": "application/json; charset=utf-8"}
    async with opened() as client:

        async def status(content: bytes, headers: dict[str, str] = headers) -> int:
            return (await client.post("/connectors", content=content, headers=headers)).status_code

        assert await status(b"{bad") == 400
        assert await status(b"") == 400
        assert await status(b"[" * 100_000) == 400
        assert await status(b'{"name": "\xff"}') == 400
        assert await status(b"{}", {}) == 415
        assert await status(b"{}", {"content-type": "text/plain"}) == 415
        assert await status(b" " * (BODY_MAX + 1)) == 413


async def test_unknown_paths_methods_and_types(opened: Opening) -> None:
    async with opened() as client:
        for method, path, status, text in [
            ("GET", "/nothing", 404, "Not Found"),
            ("GET", "/connectors/a/tasks-config", 404, "Not Found"),
            ("GET", "/connectors/a/tasks/x/status", 404, "Not Found"),
            ("DELETE", "/connectors", 405, "Method Not Allowed"),
            ("PUT", "/connectors/a/tasks", 405, "Method Not Allowed"),
        ]:
            answer = await client.request(method, path)
            assert answer.json() == {"error_code": status, "message": f"HTTP {status} {text}"}
        assert (await client.get("/connectors", headers={"accept": "text/plain"})).status_code == 406
        assert (await client.get("/metrics", headers={"accept": "text/plain"})).status_code == 200
        assert (await client.options("/connectors")).headers["allow"] == "GET,POST,HEAD,OPTIONS"
        assert (await client.head("/connectors")).status_code == 200


async def test_a_path_that_is_not_utf_8_or_has_a_line_break_is_answered(opened: Opening) -> None:
    async with opened() as client:
        answer = await client.put("/connectors/a%FFb/config", json=CONFIG)
        assert (answer.status_code, "not UTF-8" in answer.json()["message"]) == (400, True)
        answer = await client.get("/connectors/a%0Ab")
        assert (answer.status_code, answer.json()["message"]) == (404, "Connector a\nb not found")


async def test_names_may_hold_slashes_and_blanks(opened: Opening) -> None:
    async with opened() as client:
        created = await client.post("/connectors", json={"name": "a/b c", "config": CONFIG})
        assert created.headers["location"] == "http://worker:8083/connectors/a%2Fb%20c"
        assert (await client.get("/connectors/a%2Fb%20c/status")).json()["name"] == "a/b c"


async def test_states(opened: Opening, service: FakeService) -> None:
    service.configs["a"] = CONFIG
    async with opened() as client:
        for path, status in [("pause", 202), ("resume", 202), ("stop", 204)]:
            answer = await client.put(f"/connectors/a/{path}")
            assert (answer.status_code, answer.content) == (status, b"")
        assert (await client.post("/connectors/a/restart")).status_code == 204
        assert (await client.post("/connectors/a/restart?includeTasks=no")).status_code == 204
        answer = await client.post("/connectors/a/restart?includeTasks=TRUE&onlyFailed=false")
        assert (answer.status_code, answer.json()["name"]) == (202, "a")
        assert (await client.post("/connectors/a/restart?onlyFailed=true")).status_code == 202
        assert (await client.get("/connectors/a/tasks/0/status")).json()["id"] == 0
        assert (await client.get("/connectors/a/tasks/9/status")).status_code == 404
        assert (await client.post("/connectors/a/tasks/0/restart")).status_code == 204
    assert service.calls == [
        ("target", "a", TargetState.PAUSED),
        ("target", "a", TargetState.STARTED),
        ("target", "a", TargetState.STOPPED),
        ("restart", "a"),
        ("restart", "a"),
        ("restart_all", "a", True, False),
        ("restart_all", "a", False, True),
        ("restart_task", "a", 0),
    ]


async def test_offsets(opened: Opening, service: FakeService) -> None:
    service.configs["a"] = CONFIG
    offsets = {
        "offsets": [{"partition": {"p": 1}, "offset": {"o": 2}}, {"partition": {"p": 2}, "offset": None}]
    }
    async with opened() as client:
        assert (await client.patch("/connectors/a/offsets", json=offsets)).status_code == 400
        await client.put("/connectors/a/stop")
        altered = await client.patch("/connectors/a/offsets", json=offsets)
        assert altered.json() == {"message": "The offsets for this connector have been altered successfully"}
        assert (await client.get("/connectors/a/offsets")).json() == {"offsets": offsets["offsets"][:1]}
        assert (await client.delete("/connectors/a/offsets")).status_code == 200
        nothing = {"offsets": [{}, {"partition": None, "offset": None}]}
        assert (await client.patch("/connectors/a/offsets", json=nothing)).status_code == 200
    assert service.calls[-1] == ("alter", "a", [(None, None), (None, None)])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], "Cannot deserialize value"),
        ({}, "Partitions / offsets need to be provided for an alter offsets request"),
        ({"key": []}, "Unrecognized field"),
        ({"offsets": []}, "Partitions / offsets need to be provided for an alter offsets request"),
        ({"offsets": {"p": 1}}, "Cannot deserialize value"),
        ({"offsets": "x"}, "Cannot deserialize value"),
        ({"offsets": [123]}, "Cannot construct instance"),
        ({"offsets": [{"key": "val"}]}, "Unrecognized field"),
        ({"offsets": [{"partition": []}]}, "Cannot deserialize value"),
        ({"offsets": [{"partition": {}, "offset": 5}]}, "Cannot deserialize value"),
    ],
    ids=str,
)
async def test_offsets_that_are_none_are_refused(
    opened: Opening, service: FakeService, body: object, message: str
) -> None:
    """Refuse the bodies of Kafka's testAlterSourceConnectorOffsetsInvalidRequestBody, in its words.

    Kafka answers 500 to those that its JSON library refuses; they are the client's mistake, so ours is 400.
    """
    service.configs["a"] = CONFIG
    async with opened() as client:
        answer = await client.patch("/connectors/a/offsets", json=body)
        assert answer.status_code == 400
        assert message in answer.json()["message"]
    assert service.calls == []


async def test_topics_may_be_switched_off(opened: Opening, service: FakeService) -> None:
    service.configs["a"] = CONFIG
    async with opened() as client:
        assert (await client.get("/connectors/a/topics")).json() == {"a": {"topics": ["t"]}}
        assert (await client.put("/connectors/a/topics/reset")).status_code == 202
    async with opened(topic_tracking_allow_reset="false") as client:
        assert (await client.get("/connectors/a/topics")).status_code == 200
        assert (await client.put("/connectors/a/topics/reset")).status_code == 403
    async with opened(topic_tracking_enable="false") as client:
        answer = await client.get("/connectors/a/topics")
        assert answer.json() == {"error_code": 403, "message": "Topic tracking is disabled."}
        assert (await client.put("/connectors/a/topics/reset")).status_code == 403


async def test_plugins(opened: Opening) -> None:
    async with opened() as client:
        assert len((await client.get("/connector-plugins")).json()) == 1
        assert len((await client.get("/connector-plugins?connectorsOnly=false")).json()) == 2
        assert (await client.get("/connector-plugins/Counting/config")).json() == [{"name": "topic"}]
        unknown = await client.get("/connector-plugins/no/config")
        assert unknown.json() == {"error_code": 404, "message": "Unknown plugin no."}
        path = "/connector-plugins/Counting/config/validate"
        assert (await client.put(path, json={**CONFIG, "limit": "x"})).json()["error_count"] == 1
        assert (await client.put(path, json={})).status_code == 400
        other = await client.put(path.replace("Counting", "Other"), json=CONFIG)
        message = "Included connector type Counting does not match request type Other"
        assert other.json() == {"error_code": 400, "message": message}


async def test_workers_requests_are_passed_with_their_signature(
    opened: Opening, service: FakeService
) -> None:
    async with opened() as client:
        headers = {"X-Connect-Authorization": "signature"}
        body = b'[ {"task": 1} ]'
        assert (await client.post("/connectors/a/tasks", content=body, headers=headers)).status_code == 204
        assert (await client.put("/connectors/a/fence")).status_code == 204
    assert service.calls == [("task_configs", "a", [{"task": "1"}], "signature", body), ("fence", "a")]


async def test_health(opened: Opening, service: FakeService) -> None:
    async with opened() as client:
        assert (await client.get("/health")).json()["status"] == "healthy"
        assert (await client.get("/readyz")).json() == {"status": "ok"}
        service.state = ("starting", "soon")
        assert (await client.get("/health")).status_code == 503
        assert (await client.get("/readyz")).json() == {"error_code": 503, "message": "soon"}
        service.state = ("unhealthy", "stuck")
        assert (await client.get("/health")).status_code == 500
        assert (await client.get("/readyz")).status_code == 503
        assert (await client.get("/livez")).status_code == 200
        assert (await client.get("/")).json() == {"version": "4.4.0", "commit": "c", "kafka_cluster_id": "k"}


async def test_loggers(opened: Opening, service: FakeService) -> None:
    name = "tests.connect.rest.levels"
    child = logging.getLogger(f"{name}.child")
    child.setLevel(logging.ERROR)
    path = f"/admin/loggers/{name}"
    try:
        async with opened() as client:
            assert (await client.get(path)).status_code == 404
            assert (await client.put(path, json={"level": "debug"})).json() == [name, child.name]
            assert child.getEffectiveLevel() == logging.DEBUG
            level = (await client.get(f"{path}.child")).json()
            assert level["level"] == "DEBUG"
            assert level["last_modified"] > 0
            assert (await client.put(path, json={"level": "DEBUG"})).json() == []
            assert (await client.get("/admin/loggers")).json()[name]["level"] == "DEBUG"
            assert (await client.get("/admin/loggers/root")).json()["last_modified"] is None
            assert (await client.put(path, json={"level": "loud"})).status_code == 404
            assert (await client.put(path, json={})).status_code == 400
            assert (await client.put(f"{path}?scope=cluster", json={"level": "warn"})).status_code == 204
    finally:
        logging.getLogger(name).setLevel(logging.NOTSET)
    assert service.calls == [("logger", name, "WARN")]


async def test_admin_has_an_application_of_its_own(opened: Opening) -> None:
    async with opened(side="main") as client:
        assert (await client.get("/admin/loggers")).status_code == 404
    async with opened(side="admin") as client:
        assert (await client.get("/admin/loggers")).status_code == 200
        assert (await client.get("/connectors")).status_code == 404


async def test_failures_have_kafkas_status(opened: Opening, service: FakeService) -> None:
    async with opened() as client:

        async def answer(failure: Exception, query: str = "") -> tuple[int, str]:
            service.failure = failure
            response = await client.delete(f"/connectors/a{query}")
            return response.status_code, response.json()["message"]

        assert (await answer(Rebalancing("")))[0] == 409
        assert await answer(TimeoutError("The worker is currently polling.")) == (
            500,
            "Request timed out. The worker is currently polling.",
        )
        assert "no known leader URL" in (await answer(NotLeader("", "")))[1]
        assert (await answer(NotLeader("", "http://127.0.0.1:1"), "?forward=false"))[0] == 409
        status, message = await answer(NotLeader("", "http://127.0.0.1:1"))
        assert (status, message[:39]) == (500, "IO Error trying to forward REST request")
        status, message = await answer(ZeroDivisionError("a secret"))
        assert (status, "secret" in message) == (500, False)


async def test_a_request_that_takes_too_long_names_its_stage(opened: Opening, service: FakeService) -> None:
    async def never(name: str) -> None:
        await asyncio.Event().wait()

    service.connector_offsets = never  # type: ignore[method-assign,assignment]
    async with opened(rest_request_timeout_ms="20") as client:
        answer = await client.get("/connectors/a/offsets")
    assert answer.status_code == 500
    assert answer.json()["message"].startswith(
        "Request timed out. The worker is currently handling the request"
    )


def test_every_route_is_in_the_openapi_document(service: FakeService) -> None:
    routes = routes_of(parts_of(service))
    assert {(method, route.path) for route in routes for method in route.endpoints} == set(OPERATIONS)
    assert sum(len(operations) for operations in document()["paths"].values()) == len(OPERATIONS)
