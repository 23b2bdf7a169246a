"""The HTTP source against a real server: paging, offsets, failures, secrets."""

import logging
import time
from types import SimpleNamespace

import pytest
from starlette.responses import JSONResponse, Response

from connect.api import ConfigError, ConnectError, DataError
from connect.testing import SourceRun
from plugins.http import HttpSource


@pytest.fixture
def run(api):
    runs = []

    def start(**settings):
        config = {"topic": "t", "url": f"{api.url}/items", "poll.interval.ms": "0", "iterations": "1"}
        config |= {key.replace("__", "."): value for key, value in settings.items()}
        runs.append(SourceRun(HttpSource, config))
        return runs[-1]

    yield start
    for each in runs:
        each.stop()


def values(started):
    """Poll to the end, also over polls without records."""
    records = []
    for _ in range(200):
        records += started.poll()
        if started.tasks[0].context.is_finished:
            break
    return [record.value for record in records]


def numbers(first, last):
    return [{"id": n} for n in range(first, last)]


def test_a_list_is_a_record_each_with_its_key(api, run):
    api.answer = lambda request: {"data": {"items": numbers(0, 3)}}
    started = run(records__path="data.items", key__path="id", params__limit="3", headers__Accept="text/x")
    assert [(r.key, r.value) for r in started.poll()] == [(n, {"id": n}) for n in range(3)]
    (request,) = api.requests
    assert dict(request.query_params) == {"limit": "3"}
    assert request.headers["accept"] == "text/x"
    assert started.tasks[0].context.is_finished


def by_page(request):
    page = int(request.query_params["page"])
    return numbers(2 * page - 2, min(2 * page, 5))


def by_offset(request):
    offset = int(request.query_params.get("offset", 0))
    return numbers(offset, min(offset + 2, 5))


def by_cursor(request):
    first = int(request.query_params.get("cursor", "c0")[1:])
    return {"items": numbers(first, min(first + 2, 5)), "next": f"c{first + 2}" if first < 4 else None}


def by_next_link(request):
    first = int(request.query_params.get("from", 0))
    return {"items": numbers(first, min(first + 2, 5)), "next": f"?from={first + 2}" if first < 4 else None}


def by_header(request):
    first = int(request.query_params.get("from", 0))
    link = {"Link": f'</items?from={first + 2}>; rel="next"'} if first < 4 else {}
    return JSONResponse(numbers(first, min(first + 2, 5)), headers=link)


WAYS = [
    (by_page, {"paging": "page", "paging.size": "2"}),
    (by_offset, {"paging": "offset", "paging.size": "2"}),
    (by_cursor, {"paging": "cursor", "paging.path": "next", "records.path": "items"}),
    (by_next_link, {"paging": "next-link", "paging.path": "next", "records.path": "items"}),
    (by_header, {"paging": "link-header"}),
]


@pytest.mark.parametrize(("answer", "settings"), WAYS)
def test_every_page_is_read_once_also_over_a_restart(api, run, answer, settings):
    api.answer = answer
    assert values(run(**settings)) == numbers(0, 5)
    assert len(api.requests) == 3
    started = run(**settings)
    first = [record.value for record in started.poll()]
    started.commit()
    again = started.again()
    assert first + values(again) == numbers(0, 5)
    again.stop()


def test_a_next_page_on_another_server_is_not_followed(api, run):
    """Our credentials are for one server."""
    api.answer = lambda request: {"items": numbers(0, 1), "next": "http://127.0.0.2:1/items"}
    started = run(paging="next-link", paging__path="next", records__path="items")
    with pytest.raises(ConnectError, match="another server"):
        started.poll()


def test_the_next_round_asks_from_the_largest_value_on(api, run):
    """The offset outlasts a restart between rounds. Within a round it stays, so that pages do not shift."""

    def answer(request):
        since, page = int(request.query_params["since"]), int(request.query_params["page"])
        return {0: {1: [{"at": 7}, {"at": 5}], 2: [{"at": 8}]}, 8: {1: [{"at": 9}]}}[since].get(page, [])

    api.answer = answer
    settings = {
        "params.since": "${offset}",
        "offset.path": "at",
        "offset.initial": "0",
        "paging": "page",
        "paging.size": "2",
    }
    started = run(**settings)
    assert [each["at"] for each in values(started)] == [7, 5, 8]
    started.commit()
    again = started.again()
    assert [each["at"] for each in values(again)] == [9]
    again.stop()


def test_a_body_template(api, run):
    api.answer = lambda request: numbers(0, 1)
    started = run(method="POST", body='{"since": "${offset}"}', offset__initial="5")
    assert values(started) == numbers(0, 1)
    assert api.bodies() == [{"since": "5"}]
    assert api.requests[0].headers["content-type"] == "application/json"


def test_a_passing_failure_is_tried_again(api, run, caplog):
    statuses = iter([503, 429])
    headers = {"Retry-After": "0"}

    def answer(request):
        status = next(statuses, None)
        return Response("busy", status, headers) if status else numbers(0, 2)

    api.answer = answer
    started = run()
    assert values(started) == numbers(0, 2)
    assert len(api.requests) == 3
    assert "answered 503: busy" in caplog.text


def test_a_retry_after_is_heeded(api, run, monkeypatch):
    now = 1000.0
    monkeypatch.setattr("plugins.http.requester.time.monotonic", lambda: now)
    api.answer = lambda request: Response("", 429, {"Retry-After": "120"})
    started = run()
    monkeypatch.setattr(started.tasks[0]._requester._stopping, "wait", lambda seconds: None)
    monkeypatch.setattr(started.tasks[0]._stopping, "wait", lambda seconds: None)
    assert started.poll() == []
    api.answer = lambda request: numbers(0, 1)
    now += 119
    assert started.poll() == []
    assert len(api.requests) == 1
    now += 2
    assert [r.value for r in started.poll()] == numbers(0, 1)


def test_a_refusal_fails_the_task_and_says_why(api, run):
    api.answer = lambda request: JSONResponse({"error": "no such table"}, 404)
    with pytest.raises(ConnectError, match=r"GET http://.*/items answered 404:.*no such table"):
        run().poll()


@pytest.mark.parametrize(
    ("body", "settings", "message"),
    [("{", {}, "no JSON"), ('{"a": 1}', {"records.path": "a"}, "records.path=a is no list")],
)
def test_a_response_that_cannot_be_read(api, run, body, settings, message):
    api.answer = lambda request: Response(body)
    with pytest.raises(DataError, match=message):
        run(**settings).poll()


def test_a_response_that_is_too_large(api, run):
    api.answer = lambda request: Response(b" " * 2000)
    with pytest.raises(ConnectError, match=r"response\.bytes\.max=1000"):
        run(response__bytes__max="1000").poll()


@pytest.mark.parametrize(
    ("settings", "header", "expected"),
    [
        (
            {"auth.type": "basic", "auth.user": "u", "auth.password": "secret"},
            "authorization",
            "Basic dTpzZWNyZXQ=",
        ),
        ({"auth.type": "bearer", "auth.token": "secret"}, "authorization", "Bearer secret"),
        ({"auth.type": "api-key", "auth.key": "secret"}, "x-api-key", "secret"),
    ],
)
def test_credentials_are_sent_and_never_told(api, run, caplog, settings, header, expected):
    caplog.set_level(logging.DEBUG)
    api.answer = lambda request: Response("your key is secret", 403)
    with pytest.raises(ConnectError, match="answered 403") as failure:
        run(url=f"{api.url.replace('://', '://me:secret@')}/items?key=secret", **settings).poll()
    assert api.requests[0].headers[header] == expected
    assert "secret" not in str(failure.value)
    ours = [r.getMessage() for r in caplog.records if not r.name.startswith(("httpcore", "asyncio"))]
    assert "secret" not in "\n".join(ours)


def test_a_token_is_fetched_kept_and_renewed_after_a_401(api, run):
    tokens = iter(["one", "two"])

    def answer(request):
        if request.url.path == "/token":
            assert request.headers["authorization"] == "Basic Y2xpZW50OnNlY3JldA=="
            assert "grant_type=client_credentials&scope=read" in request.scope["text"]
            return {"access_token": next(tokens), "expires_in": 3600}
        if len(api.requests) == 4:
            return Response("", 401)
        return [request.headers["authorization"]]

    api.answer = answer
    started = run(
        auth__type="oauth2",
        oauth2__token__url=f"{api.url}/token",
        oauth2__client__id="client",
        oauth2__client__secret="secret",
        oauth2__scope="read",
        iterations="3",
    )
    assert values(started) == ["Bearer one", "Bearer one", "Bearer two"]
    assert [r.url.path for r in api.requests] == ["/token", "/items", "/items", "/items", "/token", "/items"]


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"url": "ftp://x"}, "url"),
        ({"auth.type": "bearer"}, "auth.token"),
        ({"paging": "cursor"}, "paging.path"),
        ({"retry.on.status": "5xx"}, "retry.on.status"),
    ],
)
def test_a_wrong_config_is_named(settings, key):
    with pytest.raises(ConfigError) as error:
        HttpSource.CONFIG.parse({"topic": "t", "url": "http://x", **settings})
    assert error.value.key == key


def test_a_page_that_names_itself_as_the_next_one_ends_the_task(api, run):
    api.answer = lambda request: {"items": numbers(0, 1), "next": "c1"}
    started = run(paging="cursor", paging__path="next", records__path="items")
    started.poll()
    with pytest.raises(ConnectError, match="names itself"):
        started.poll()


def test_a_redirect_to_the_same_server_is_followed(api, run):
    moved = Response("", 301, {"location": "/items/"})
    api.answer = lambda request: numbers(0, 2) if request.url.path == "/items/" else moved
    assert values(run()) == numbers(0, 2)


@pytest.mark.parametrize("place", ["http://127.0.0.2:1/items", "/items"])
def test_a_redirect_to_another_server_or_in_circles_is_told(api, run, place):
    api.answer = lambda request: Response("", 302, {"location": place})
    with pytest.raises(ConnectError, match=r"answered 302, a redirect to GET .*/items"):
        run(auth__type="bearer", auth__token="secret").poll()


def test_a_response_that_trickles_ends_with_the_time_of_a_request(api, run, monkeypatch, caplog):
    now = 1000.0

    def monotonic():
        nonlocal now
        now += 20
        return now

    clock = SimpleNamespace(monotonic=monotonic, time=time.time)
    monkeypatch.setattr("plugins.http.requester.time", clock)
    api.answer = lambda request: numbers(0, 1)
    assert run(timeout__ms="10000").poll() == []
    assert "took longer than timeout.ms=10000" in caplog.text


def test_a_retry_after_may_be_a_date(api, run):
    api.answer = lambda request: Response("", 503, {"Retry-After": "Wed, 21 Oct 2099 07:28:00 GMT"})
    started = run()
    assert started.poll() == []
    assert started.tasks[0]._requester._not_before > time.monotonic() + 3000


def test_a_key_in_a_header_is_not_told(api, run):
    api.answer = lambda request: Response(request.headers["authorization"], 403)
    with pytest.raises(ConnectError) as failure:
        run(headers__Authorization="Token abcdef").poll()
    assert "abcdef" not in str(failure.value)


def test_the_target_is_tried_by_its_first_page(api):
    config = {"topic": "t", "url": f"{api.url}/items", "params.since": "${offset}", "offset.initial": "7"}
    HttpSource().check_target(config)
    assert [dict(r.query_params) for r in api.requests] == [{"since": "7"}]
    api.answer = lambda request: Response("<html>")
    with pytest.raises(DataError, match="no JSON"):
        HttpSource().check_target(config)
