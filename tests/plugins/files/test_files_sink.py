"""The files sink: formats, names, and nothing twice after re-delivery."""

import datetime as dt
import json
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from connect.api import (
    ConfigError,
    ConnectError,
    DataError,
    JsonBatch,
    PartitionsFenced,
    SinkRecord,
    SinkTaskContext,
    TopicPartition,
    schema,
)
from connect.runtime.json_records import json_batches
from connect.testing import SinkRun
from plugins.files import FilesSink, FileStreamSink
from plugins.files.claims import Claim
from plugins.files.sink import FilesSinkTask
from tests.support.depth import deep


def records(first, last, partition=0):
    return [
        SinkRecord("t", partition, o, value={"n": o}, key=str(o), timestamp=o * 10)
        for o in range(first, last)
    ]


def lines(folder):
    return {
        p.name: [json.loads(line) for line in p.read_text().splitlines()]
        for p in sorted(folder.rglob("*.jsonl"))
    }


def test_files_are_named_by_topic_partition_and_first_offset(tmp_path):
    with SinkRun(FilesSink, {"path": str(tmp_path / "out"), "file.records.max": "10"}) as sink:
        sink.put(records(3, 12))
        sink.put(records(0, 2, partition=1))
        offsets = sink.flush()
    assert offsets == {TopicPartition("t", 0): 12, TopicPartition("t", 1): 2}
    assert {name: len(rows) for name, rows in lines(tmp_path).items()} == {
        "t+0+00000000000000000003.jsonl": 7,
        "t+0+00000000000000000010.jsonl": 2,
        "t+1+00000000000000000000.jsonl": 2,
    }


def test_records_of_several_partitions_in_any_order(tmp_path):
    """Records of several topics and partitions in one `put` are split into files per partition."""
    mixed = [
        SinkRecord(topic, partition, offset, value={"n": offset})
        for offset in range(7)
        for topic in ("t", "u")
        for partition in (0, 1)
        if offset >= 3 * partition
    ]
    with SinkRun(FilesSink, {"path": str(tmp_path), "file.records.max": "5"}) as sink:
        sink.put(mixed[:7])
        sink.put(mixed[7:])
        sink.flush()
    numbers = {name: [row["n"] for row in rows] for name, rows in lines(tmp_path).items()}
    assert numbers == {
        f"{topic}+{partition}+{first:020}.jsonl": list(range(first, upto))
        for topic in ("t", "u")
        for partition, first, upto in ((0, 0, 5), (0, 5, 7), (1, 3, 5), (1, 5, 7))
    }


@deep
@pytest.mark.parametrize("seed", range(20))
def test_redelivery_after_crashes_leaves_every_record_once(tmp_path, seed):
    """Records are in the files once though workers are killed between a flush and its commit.

    Each worker begins at the committed offset, puts some records, and flushes at random moments. It may die
    before a flush is committed, and leave files for which there is no offset.
    """
    rng = random.Random(seed)
    committed, end = 0, 100
    while committed < end:
        sink = SinkRun(FilesSink, {"path": str(tmp_path), "file.records.max": "8"})
        position = committed
        for _ in range(rng.randint(1, 4)):
            upto = min(end, position + rng.randint(1, 20))
            sink.put(records(position, upto))
            position = upto
            if rng.random() < 0.5:
                sink.flush()
                if rng.random() < 0.4:
                    break  # killed before the commit
                committed = position
    numbers = [row["n"] for rows in lines(tmp_path).values() for row in rows]
    assert numbers == list(range(end)), f"seed {seed}"


def test_what_was_not_flushed_is_forgotten_on_close(tmp_path):
    sink = SinkRun(FilesSink, {"path": str(tmp_path)})
    sink.put(records(0, 3))
    sink.stop()
    assert lines(tmp_path) == {}


def names(folder):
    return sorted(path.name for path in folder.rglob("*.jsonl"))


def test_a_topic_made_again_overwrites_nothing(tmp_path):
    """Its offsets begin at 0 again, also while the sink runs: only the topic's id tells the two apart."""
    with SinkRun(FilesSink, {"path": str(tmp_path)}) as sink:
        sink.task.context.topic_ids["t"] = b"a" * 16
        sink.put(records(0, 5))
        sink.flush()
        sink.put(records(5, 7))
        sink.task.context.topic_ids["t"] = b"b" * 16
        sink.put(records(0, 2))
        sink.flush()
    first, second = "YWFhYWFhYWFhYWFhYWFhYQ", "YmJiYmJiYmJiYmJiYmJiYg"
    assert {name: len(rows) for name, rows in lines(tmp_path).items()} == {
        f"t+0+{0:020}+{first}.jsonl": 5,
        f"t+0+{5:020}+{first}.jsonl": 2,
        f"t+0+{0:020}+{second}.jsonl": 2,
    }


@pytest.mark.parametrize("position", [3, 10])
def test_a_file_written_again_after_compaction_has_its_old_name(tmp_path, position):
    """Name the file by the committed offset or its multiple: its first record is gone by then."""
    for first in (position, position + 2):  # killed before the commit, and compacted
        sink = SinkRun(FilesSink, {"path": str(tmp_path), "file.records.max": "10"})
        sink.task.context.positions[TopicPartition("t", 0)] = position
        sink.put(records(first, position + 4))
        sink.put(records(21, 23))
        sink.task.flush({})
    assert names(tmp_path) == [f"t+0+{offset:020}.jsonl" for offset in (position, 20)]
    assert [row["n"] for row in lines(tmp_path)[f"t+0+{position:020}.jsonl"]] == [
        position + 2,
        position + 3,
    ]


def test_records_that_come_again_into_a_buffer_are_written_once(tmp_path):
    """Deliver again what a buffer still holds, as a rewind after a failed flush does."""
    with SinkRun(FilesSink, {"path": str(tmp_path)}) as sink:
        sink.put(records(0, 5))
        sink.put(records(0, 7))
        sink.flush()
    assert [row["n"] for rows in lines(tmp_path).values() for row in rows] == list(range(7))


def test_a_file_takes_records_for_its_interval(tmp_path, monkeypatch):
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    tp = TopicPartition("t", 0)
    with SinkRun(FilesSink, {"path": str(tmp_path), "file.interval.ms": "5000"}) as sink:
        requests = []
        sink.task.context.request_commit = lambda: requests.append(now)
        sink.put(records(3, 5))
        assert sink.flush() == {tp: 3}
        assert names(tmp_path) == [] and requests == []
        now += 5
        sink.put(records(5, 6))
        assert requests == [now]
        assert sink.flush() == {tp: 6}
    assert {name: len(rows) for name, rows in lines(tmp_path).items()} == {f"t+0+{3:020}.jsonl": 3}


def test_a_file_ends_at_its_size_by_a_commit(tmp_path):
    with SinkRun(FilesSink, {"path": str(tmp_path), "file.bytes.max": "50"}) as sink:
        requests = []
        sink.task.context.request_commit = lambda: requests.append(True)
        sink.put(records(0, 3))
        assert not requests
        sink.put(records(3, 9))
        assert requests
        sink.flush()
        sink.put(records(9, 10))
    assert names(tmp_path) == [f"t+0+{0:020}.jsonl"]


def test_whole_records_as_json(tmp_path):
    record = SinkRecord("t", 2, 7, value=None, key="k", timestamp=5, headers=[("h", None, 1)])
    with SinkRun(FilesSink, {"path": str(tmp_path), "content": "record"}) as sink:
        sink.put([record])
        sink.flush()
    (rows,) = lines(tmp_path).values()
    assert rows == [
        {
            "topic": "t",
            "partition": 2,
            "offset": 7,
            "timestamp": 5,
            "key": "k",
            "value": None,
            "headers": [{"name": "h", "value": 1}],
        }
    ]


def test_records_made_of_one_record_are_in_one_file(tmp_path):
    """A transform gives them the record's offset, which must not begin a file of the same name again."""
    pytest.importorskip("fastavro")
    of = schema.struct({"n": schema.int32()})
    made = [SinkRecord("t", 0, 4, value={"n": n}, value_schema=of) for n in range(3)]
    for kind in ("json", "avro"):
        with SinkRun(FilesSink, {"path": str(tmp_path), "format": kind}) as sink:
            sink.put(made)
            assert sink.task.statistics()["held_records"] == 3
            sink.flush()


def test_json_lines_leave_out_tombstones_and_stop_at_the_next_files_offset(tmp_path):
    batch = JsonBatch(
        topic="t",
        source=TopicPartition("t", 0),
        offsets=[1, 4, 5, 6],
        timestamps=[0] * 4,
        keys=[None] * 4,
        values=[b'{"a": 1.50}', None, b"5", None],
    )
    task = FilesSinkTask()
    task.context = SinkTaskContext(connector="c", task_id=0)
    task.start({"path": str(tmp_path), "file.records.max": "5"})
    task.open([batch.source])
    task.put_json([batch])
    task.flush({})
    task.stop()
    assert {path.name: path.read_bytes() for path in tmp_path.rglob("*.jsonl")} == {
        f"t+0+{1:020}.jsonl": b'{"a": 1.50}\n',
        f"t+0+{5:020}.jsonl": b"5\n",
    }


@deep
def test_parquet(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    of = schema.struct({"n": schema.int32(), "d": schema.date(optional=True)})
    with SinkRun(FilesSink, {"path": str(tmp_path), "format": "parquet"}) as sink:
        sink.put(records(0, 5))
        sink.put([SinkRecord("s", 0, 0, value={"n": 1, "d": dt.date(2013, 1, 1)}, value_schema=of)])
        sink.flush()
    assert pq.read_table(tmp_path / "t").to_pylist() == [{"n": n} for n in range(5)]
    typed = pq.read_table(next((tmp_path / "s").iterdir()))
    assert typed.to_pylist() == [{"n": 1, "d": dt.date(2013, 1, 1)}]
    assert str(typed.schema.field("n").type) == "int32"


def test_values_without_columns_fail_by_offset(tmp_path):
    pytest.importorskip("pyarrow")
    sink = SinkRun(FilesSink, {"path": str(tmp_path), "format": "parquet"})
    sink.put([SinkRecord("t", 0, 4, value="text")])
    with pytest.raises(ConnectError, match="t-0, offsets 4 to 4"):
        sink.flush()
    sink.stop()


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConnectError, match="cannot be made"):
        SinkRun(FilesSink, {"path": str(tmp_path / "file")})
    with pytest.raises(ConfigError):
        FilesSink.CONFIG.parse({"path": "x", "format": "xml"})


def test_kafkas_file_stream_sink_appends(tmp_path):
    path = tmp_path / "out.txt"
    with SinkRun(FileStreamSink, {"file": str(path)}) as sink:
        sink.put([SinkRecord("t", 0, 0, value="a"), SinkRecord("t", 0, 1, value={"b": 1})])
        sink.flush()
    assert path.read_text() == 'a\n{"b":1}\n'


def parquet_of(tmp_path, rows, **more):
    """Return the table in the file that is written of these values (or pairs of value and schema)."""
    import pyarrow.parquet as pq

    pairs = [row if isinstance(row, tuple) else (row, None) for row in rows]
    with SinkRun(FilesSink, {"path": str(tmp_path), "format": "parquet", **more}) as sink:
        sink.put([SinkRecord("t", 0, i, value=v, value_schema=s) for i, (v, s) in enumerate(pairs)])
        sink.flush()
    (path,) = (tmp_path / "t").glob("*.parquet")
    return pq.read_table(path)


def test_parquet_keeps_fields_that_the_first_record_lacks(tmp_path):
    table = parquet_of(tmp_path, [{"a": 1}, None, {"b": "x", "a": 2}])
    assert table.to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]


def test_parquet_keeps_fields_of_a_schema_that_grows(tmp_path):
    old = schema.struct({"a": schema.int32()})
    new = schema.struct({"a": schema.int64(), "b": schema.string()})
    table = parquet_of(tmp_path, [(None, None), ({"a": 1}, old), ({"a": 2, "b": "x"}, new)])
    assert table.to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]
    assert str(table.schema.field("a").type) == "int64"


@pytest.mark.parametrize("rows", [[5], ["text"], [{"a": 2**70}], [{"a": 1}, {"a": "x"}]])
def test_what_does_not_fit_columns_is_named(tmp_path, rows):
    with pytest.raises(DataError, match="t-0, offsets 0 to"):
        parquet_of(tmp_path, rows)


def claims(folder):
    """Return the paths under `.claims`: folders of claims, and files being written, by partition."""
    paths = [path.relative_to(folder / ".claims").parts for path in (folder / ".claims").rglob("*")]
    return sorted((parts[0], *parts[2:]) for parts in paths if len(parts) > 1)


def test_what_a_killed_worker_was_writing_is_removed_by_the_partitions_next_owner(tmp_path, monkeypatch):
    """And not what another partition's owner is writing."""

    def fail(descriptor):
        raise KeyboardInterrupt  # killed: nothing is tidied up

    for partition in (0, 1):
        task = SinkRun(FilesSink, {"path": str(tmp_path)}).task
        task.open([TopicPartition("t", partition)])
        task.put_json(json_batches(records(0, 1, partition)))
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr("plugins.files.sink.os.fsync", fail)
            patch.setattr("pathlib.Path.unlink", lambda path, missing_ok: None)
            task.flush({})
    left = [(f"t+{p}", f"t+{p}+{0:020d}.jsonl.tmp") for p in (0, 1)]
    assert claims(tmp_path) == [("t+0",), left[0], ("t+1",), left[1]]

    with SinkRun(FilesSink, {"path": str(tmp_path)}) as sink:
        sink.put(records(0, 1))
        assert claims(tmp_path) == [("t+0",), ("t+1",), left[1]]
        sink.flush()
    assert claims(tmp_path) == [("t+1",), left[1]]
    assert [len(rows) for rows in lines(tmp_path).values()] == [1]


@pytest.mark.parametrize("at", ["before it is begun", "before the rename"])
def test_an_earlier_owner_overwrites_nothing_of_the_next_ones(tmp_path, monkeypatch, at):
    """Paused workers overwrite no file of the next owner.

    The worker is paused while it writes its first record; the next owner has written files meanwhile.
    """
    first, second = (SinkRun(FilesSink, {"path": str(tmp_path)}) for _ in range(2))

    def take_over(descriptor=None):
        monkeypatch.undo()
        second.put(records(0, 5))
        second.flush()

    first.put(records(0, 1))
    if at == "before the rename":
        monkeypatch.setattr("plugins.files.sink.os.fsync", take_over)
    else:
        take_over()
    with pytest.raises(PartitionsFenced, match="t-0 has been claimed by another task"):
        first.flush()
    first.stop()
    assert [len(rows) for rows in lines(tmp_path).values()] == [5]
    second.put(records(5, 7))
    second.flush()
    second.stop()
    assert [len(rows) for rows in lines(tmp_path).values()] == [5, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


def test_claims_at_the_same_time_leave_at_most_one(tmp_path):
    """At most one of several concurrent claims stays: one may remove the other, or both each other."""
    tp = TopicPartition("t", 0)
    start = threading.Barrier(8)

    def claim(_):
        start.wait()
        return Claim(tmp_path, tp)

    def holds(claim):
        with suppress(PartitionsFenced):
            claim.check()
            return True

    for _ in range(20):
        with ThreadPoolExecutor(8) as pool:
            claims_at_once = list(pool.map(claim, range(8)))
        assert sum(map(bool, map(holds, claims_at_once))) <= 1
        last = Claim(tmp_path, tp)
        assert not any(map(holds, claims_at_once)) and holds(last)
        for one in (*claims_at_once, last):
            one.release()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [{"a": {}}, {"a": 2**70}])
def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path, value):
    pytest.importorskip("pyarrow")
    sink = SinkRun(FilesSink, {"path": str(tmp_path), "format": "parquet"})
    with pytest.raises(DataError, match="t-0, offsets 4 to 4"):
        sink.put([SinkRecord("t", 0, 4, value=value)])
        sink.flush()
    assert list(tmp_path.rglob("*.parquet")) == []
    sink.stop()
