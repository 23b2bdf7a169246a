"""The HTTP sink against a real server: batches, failures, records that are refused."""

import json

import pytest
from starlette.responses import Response

from connect.api import DataError, RetriableError, SinkRecord, SinkTaskContext
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
