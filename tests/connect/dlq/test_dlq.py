"""`millstream connect dlq` on a real broker: letters are listed, shown, retried and dropped."""

import asyncio
import json

import pytest
from typer.testing import CliRunner

from connect.api import SourceRecord
from connect.dlq.cli import app
from connect.runtime.errors.failed_row import failed_sink_row, failed_source_row
from connect.runtime.errors.stages import Stage, StageError
from kafka_client import Admin, BatchFetcher, BatchProducer, Client, NewTopic, TopicPartition
from tests.support.logd_process import LogdProcess


@pytest.fixture(scope="module")
def logd(tmp_path_factory):
    with LogdProcess(tmp_path_factory.mktemp("logd")) as process:
        yield process


def letter(row, connector="c"):
    return (row.timestamp, row.key, row.value, (*row.headers, *row.context_headers(connector, 0)))


def failed(stage, cause):
    return StageError(stage, "value", "x.Y", cause)


ROWS = [
    (TopicPartition("t", 2), (7, 1000, b"k", b"{", (("h", b"v"),)), Stage.VALUE_CONVERTER, ValueError("bad")),
    (TopicPartition("t", 0), (9, 2000, None, None, ()), Stage.TASK_PUT, KeyError("x")),
    (TopicPartition("u", 5), (1, 3000, b"k", b"\xff", ()), Stage.VALUE_CONVERTER, ValueError("bad")),
]


@pytest.fixture
def dead(logd):
    """A queue of three letters of a sink and one of a source, which has no bytes."""

    async def fill():
        async with Client(logd.bootstrap) as client:
            admin = Admin(client)
            await admin.delete_topics(["dead", "t", "u", "other"], missing_ok=True)
            await admin.create_topics(
                [NewTopic(n, c, 1) for n, c in (("dead", 1), ("t", 3), ("u", 1), ("other", 1))]
            )
            records = [letter(failed_sink_row(tp, raw, failed(s, e))) for tp, raw, s, e in ROWS]
            lost = SourceRecord("t", object(), source_partition={"f": 1}, source_offset={"l": 2})
            row = failed_source_row(lost, failed(Stage.VALUE_CONVERTER, TypeError("no JSON")))
            _, *rest = letter(row, "s")
            async with BatchProducer(client) as producer:
                await (await producer.send("dead", 0, [*records, (4000, *rest)]))

    asyncio.run(fill())
    return logd.bootstrap


def read(bootstrap, *topics):
    """Return (topic, partition, timestamp, key, value, headers) of all records."""

    async def run():
        async with Client(bootstrap) as client, BatchFetcher(client, auto_offset_reset="earliest") as fetcher:
            tps = (await client.metadata(list(topics))).partitions(list(topics))
            ends = await Admin(client).list_offsets(dict.fromkeys(tps, "latest"))
            firsts = await Admin(client).list_offsets(dict.fromkeys(tps, "earliest"))
            records = []
            fetcher.assign({tp: firsts[tp].offset for tp in tps})
            while any(fetcher.position(tp) < ends[tp].offset for tp in tps):
                for fetched in await fetcher.fetch(timeout_ms=100):
                    records += [(*fetched.tp, *record[1:]) for record in fetched.records()]
            return sorted(records, key=lambda r: r[2])

    return asyncio.run(run())


def run(bootstrap, *arguments, status=0):
    result = CliRunner().invoke(app, [*arguments, "-b", bootstrap])
    assert result.exit_code == status, result.output
    return [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")], result.stderr


def test_letters_are_counted_by_connector_stage_and_exception(dead):
    expected = [
        ("c", "VALUE_CONVERTER", "builtins.ValueError", 2),
        ("c", "TASK_PUT", "builtins.KeyError", 1),
        ("s", "VALUE_CONVERTER", "builtins.TypeError", 1),
    ]
    for arguments in (["dead"], []):  # named, or found by its headers
        lines, _ = run(dead, "list", *arguments)
        assert [tuple(line.values()) for line in lines] == [("dead", *each) for each in expected]


def test_a_letter_is_shown_with_its_errors(dead):
    (line,), _ = run(dead, "show", "dead", "--limit", "1")
    errors = line.pop("errors")
    assert line == {
        "partition": 0,
        "offset": 0,
        "timestamp": 1000,
        "key": "k",
        "value": "{",
        "headers": {"h": "v"},
    }
    assert (errors["topic"], errors["partition"], errors["offset"]) == ("t", "2", "7")
    lines, _ = run(dead, "show", "dead", "--from", "1", "--stage", "value_converter")
    assert [line["offset"] for line in lines] == [2, 3]
    assert lines[0]["value"] == "\\xff"


def test_a_retry_writes_records_back_as_they_were(dead):
    (line,), stderr = run(dead, "retry", "dead", "--drop", status=1)
    assert line == {"topic": "dead", "written": 3, "refused": 1}
    assert "dead-0, offset 3: a source's record without bytes" in stderr
    assert read(dead, "t", "u") == [
        ("t", 2, 1000, b"k", b"{", (("h", b"v"),)),
        ("t", 0, 2000, None, None, ()),
        ("u", 0, 3000, b"k", b"\xff", ()),  # partition 5 is no more
    ]
    assert [record[2] for record in read(dead, "dead")] == [4000]


def test_a_retry_of_some_drops_none_of_the_others(dead):
    (line,), _ = run(dead, "retry", "dead", "--exception", "KeyError", "--drop", "--to", "other")
    assert line["written"] == 1
    assert [(r[0], r[2]) for r in read(dead, "other")] == [("other", 2000)]
    assert len(read(dead, "dead")) == 4, "the first letter was not retried, so nothing is deleted"


def test_letters_are_dropped_up_to_an_offset(dead):
    assert run(dead, "drop", "dead", "--until", "2")[0] == [
        {"topic": "dead", "partition": 0, "first_offset": 2}
    ]
    assert [record[2] for record in read(dead, "dead")] == [3000, 4000]
    run(dead, "drop", "dead", "--until", "100")
    assert read(dead, "dead") == []


@pytest.mark.parametrize("arguments", [["drop", "dead"], ["drop", "dead", "--all", "--until", "1"]])
def test_a_drop_without_a_limit_is_refused(dead, arguments):
    run(dead, *arguments, status=2)
    assert len(read(dead, "dead")) == 4


def test_a_topic_that_does_not_exist_is_named(dead):
    assert "there is no topic deaf" in run(dead, "show", "deaf", status=2)[1]
