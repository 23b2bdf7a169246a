"""The HTTP sink against a real server: batches, failures, records that are refused."""

import json

import pytest
from starlette.responses import Response

from connect.api import ConfigError, ConnectError, DataError, RetriableError, SinkRecord, SinkTaskContext
from connect.api.records import Origin
from connect.testing import SinkRun
from plugins.http import HttpSink


@pytest.fixture
def sink(api):
    runs = []

    def start(**settings):
        config = {"url": f"{api.url}/in/${{topic}}"}
        config |= {key.replace("__", "."): value for key, value in settings.items()}
        runs.append(SinkRun(HttpSink, config))
        return runs[-1]

    yield start
    for each in runs:
        each.stop()


def records(*values, topic="t"):
    return [SinkRecord(topic, 0, n, value=value, key=f"k/{n}") for n, value in enumerate(values)]


def test_a_request_for_each_record(api, sink):
    sink(url=f"{api.url}/in/${{topic}}/${{key}}", method="PUT").put(records({"a": 1}, "text", b"\x00"))
    sent = [(r.method, r.url.path, r.headers["content-type"]) for r in api.requests]
    assert sent == [
        ("PUT", "/in/t/k/0", "application/json"),
        ("PUT", "/in/t/k/1", "text/plain; charset=utf-8"),
        ("PUT", "/in/t/k/2", "application/octet-stream"),
    ]
    assert api.requests[0].scope["raw_path"] == b"/in/t/k%2F0"


def test_batches_by_url_and_size(api, sink):
    started = sink(batch__format="array", batch__max__records="2")
    started.put([*records(1, 2, 3), *records(4, topic="u")])
    assert [(r.url.path, json.loads(r.scope["text"])) for r in api.requests] == [
        ("/in/t", [1, 2]),
        ("/in/t", [3]),
        ("/in/u", [4]),
    ]


def test_lines(api, sink):
    sink(batch__format="lines").put(records({"a": 1}, {"a": 2}))
    (request,) = api.requests
    assert request.scope["text"] == '{"a":1}\n{"a":2}\n'
    assert request.headers["content-type"] == "application/x-ndjson"


@pytest.mark.parametrize("on_null", ["ignore", "delete"])
def test_records_without_a_value(api, sink, on_null):
    started = sink(url=f"{api.url}/in/${{key}}", batch__format="array", on__null__value=on_null)
    started.put(records(1, None, 2))
    methods = ["POST", "DELETE", "POST"] if on_null == "delete" else ["POST", "POST"]
    assert [r.method for r in api.requests] == methods


def test_a_passing_failure_sends_only_what_was_not_accepted(api, sink):
    api.answer = lambda request: Response("", 503 if len(api.requests) == 2 else 200)
    started = sink()
    with pytest.raises(RetriableError, match="answered 503"):
        started.put(records(1, 2, 3))
    started.put(records(1, 2, 3))
    assert api.bodies() == [1, 2, 2, 3]
    started.put(records(1, 2, 3))  # delivered again by a rewind: sent again
    assert api.bodies()[4:] == [1, 2, 3]


def test_a_server_that_is_away_is_a_passing_failure(sink):
    with pytest.raises(RetriableError, match="ConnectError"):
        sink(url="http://127.0.0.1:1/in").put(records(1))


def picky(request):
    return Response(
        "bad" if "0" in request.scope["text"] else "", 400 if "0" in request.scope["text"] else 200
    )


def test_a_refused_record_is_named(api, sink):
    api.answer = picky
    with pytest.raises(DataError, match=r"t-0, offset 1: POST .*answered 400: bad"):
        sink(batch__format="array").put(records(1, 0, 2))


def test_refused_records_of_a_batch_are_reported_and_the_others_sent(api, sink):
    api.answer = picky
    started = sink(batch__format="array")
    reports = []

    class Reporter:
        def report(self, record, error):
            reports.append((record.offset, str(error)))

    started.task.context = SinkTaskContext(connector="c", task_id=0, reporter=Reporter())
    started.put(records(1, 0, 2, {"odd": object}))
    assert [offset for offset, _ in reports] == [1, 3]
    assert "cannot be written as JSON" in reports[1][1]
    assert [body for body in api.bodies() if body not in ([0],)] == [[1], [2]]


def test_wrong_credentials_are_not_the_records_fault(api, sink):
    api.answer = lambda request: Response("", 401)
    with pytest.raises(Exception, match="answered 401"):
        sink(batch__format="array").put(records(1, 2))
    assert len(api.requests) == 1


def test_records_that_transforms_put_into_one_topic_are_not_taken_for_each_other(api, sink):
    """A failed put of one topic says nothing about another's records, though both have one name now."""
    api.answer = lambda request: Response("", 503 if request.scope["text"] == "2" else 200)
    started = sink()

    def routed(topic, offset, value):
        return SinkRecord("all", 0, offset, value, origin=Origin(topic, 0, offset))

    with pytest.raises(RetriableError):
        started.task.put([routed("a", 8, 1), routed("a", 9, 2)])
    started.task.put([routed("b", 3, 3)])
    assert api.bodies() == [1, 2, 3]


def test_records_made_of_one_are_each_sent_after_a_failure(api, sink):
    api.answer = lambda request: Response("", 503 if len(api.requests) == 2 else 200)
    started = sink()
    parts = [SinkRecord("t", 0, 5, "first"), SinkRecord("t", 0, 5, "second")]
    with pytest.raises(RetriableError):
        started.task.put(parts)
    started.task.put(parts)
    assert [r.scope["text"] for r in api.requests] == ["first", "second", "second"]


def test_a_refused_batch_that_is_interrupted_sends_only_its_rest(api, sink):
    def answer(request):
        is_batch = "," in request.scope["text"]
        return Response("", 400 if is_batch else 503 if len(api.requests) == 3 else 200)

    api.answer = answer
    started = sink(batch__format="array")
    with pytest.raises(RetriableError):
        started.put(records(1, 2))
    started.put(records(1, 2))
    assert api.bodies() == [[1, 2], [1], [2], [2]]


@pytest.mark.parametrize("status", [404, 410])
def test_a_delete_of_what_is_not_there_is_done(api, sink, status):
    api.answer = lambda request: Response("", status)
    sink(url=f"{api.url}/in/${{key}}", on__null__value="delete").put(records(None))
    assert [r.method for r in api.requests] == ["DELETE"]


@pytest.mark.parametrize("value", [None, 1])
def test_a_record_without_the_key_that_the_url_needs_goes_nowhere(api, sink, value):
    started = sink(url=f"{api.url}/in/${{key}}", on__null__value="delete")
    with pytest.raises(DataError, match="t-0, offset 0: the record has no key"):
        started.put([SinkRecord("t", 0, 0, value)])
    assert api.requests == []


def test_a_redirect_to_the_same_server_is_followed_with_the_same_method(api, sink):
    moved = {"location": f"{api.url}/new"}
    api.answer = lambda r: Response("", 308 if r.url.path == "/in/t" else 200, moved)
    sink().put(records(1))
    assert [(r.method, r.url.path) for r in api.requests] == [("POST", "/in/t"), ("POST", "/new")]
    assert api.bodies() == [1, 1]


@pytest.mark.parametrize(("status", "place"), [(302, ""), (308, "http://127.0.0.2:1")])
def test_other_redirects_are_no_fault_of_the_records(api, sink, status, place):
    """A 302 makes a GET of a POST, and another server must not see our credentials."""
    api.answer = lambda request: Response("", status, {"location": f"{place or api.url}/new"})
    with pytest.raises(ConnectError, match=r"a redirect to .*/new, which is not followed: set url"):
        sink(batch__format="array").put(records(1, 2))
    assert len(api.requests) == 1


def test_a_long_retry_after_is_left_to_the_worker(api, sink):
    api.answer = lambda request: Response("", 429, {"Retry-After": "600"})
    started = sink()
    for message in ("answered 429", "takes no request for"):
        with pytest.raises(RetriableError, match=message):
            started.put(records(1))
    assert len(api.requests) == 1


def test_the_target_is_tried_without_a_change(api):
    config = {"url": f"{api.url}/in/${{topic}}"}
    HttpSink().check_target(config)
    assert [(r.method, r.url.path) for r in api.requests] == [("HEAD", "/in/")]
    api.answer = lambda request: Response("", 405)
    HttpSink().check_target(config)
    api.answer = lambda request: Response("", 403)
    with pytest.raises(ConnectError, match="answered 403"):
        HttpSink().check_target(config)
    with pytest.raises(RetriableError):
        HttpSink().check_target({"url": "http://127.0.0.1:1/in"})


def test_deletes_need_a_url_with_a_key():
    with pytest.raises(ConfigError, match=r"url.*needs \$\{key\}"):
        HttpSink.CONFIG.parse({"url": "http://x/in", "on.null.value": "delete"})
