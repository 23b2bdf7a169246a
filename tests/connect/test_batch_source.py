"""A running source task of record batches: what is sent as it is, is built again, or is refused."""

import asyncio
import json

import pytest

from connect.api import RawBatch
from connect.errors import ConfigError, DataError, InvalidConfig
from connect.runtime import WorkerConfig
from connect.runtime.batch_source_task import WorkerBatchSourceTask
from connect.runtime.config_report import report_config
from connect.runtime.connector_check import check_config
from connect.runtime.raw_batches import passed
from connect.runtime.states import State
from connect.testing import SourceRun
from connect.testing.conformance import SourceConformance
from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.records import (
    Codec,
    assign_append_time,
    build_batch,
    build_marker,
    decode_records,
    read_header,
    rebuild_batch,
)
from tests.support.batch_files import BatchFiles, BatchFilesTask, write_batches

KEY = "tests.support.batch_files:BatchFiles"
MARKER = build_marker(True, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp_ms=1)
RECORDS = [(5, b"a", b"1", (("h", None),)), (6, None, b"2", ()), (7, b"c", None, ())]


class TestBatchFiles(SourceConformance):
    connector = BatchFiles
    poll_max = 4
    blocks = False

    def config(self, folder):
        return {"folder": str(folder), "topic": "t"}

    def add(self, folder, numbers):
        write_batches(folder, numbers)

    def number(self, record):
        return int(record.value)


def test_the_harness_has_the_batches_and_their_records(tmp_path):
    write_batches(tmp_path, range(4))
    run = SourceRun(BatchFiles, {"folder": str(tmp_path), "topic": "t"})
    records = run.records()
    assert [(r.topic, r.partition, r.key, r.value, r.timestamp) for r in records] == [
        ("t", 1, b"k%d" % n, b"%d" % n, 1000 + n) for n in range(4)
    ]
    assert records[0].headers == [("h", None, b"x")]
    assert [read_header(batch.data).codec for batch in run.batches] == [Codec.LZ4] * 2
    run.commit()
    assert run.tasks[0].committed == [(batch.source_offset["file"], None) for batch in run.batches]
    run.stop()


@pytest.fixture
def raw_producer(fake_producer, monkeypatch):
    """The double of the producer, with batches."""

    async def send_batch(self, topic, partition, batch):
        return await self.send(topic, partition, [bytes(batch)])

    monkeypatch.setattr(fake_producer, "send_batch", send_batch, raising=False)
    return fake_producer


def new_task(harness, folder, **config):
    setting = harness.setting(folder=str(folder), topic="t", **config)
    return WorkerBatchSourceTask(setting, BatchFilesTask(), harness.store)


async def test_batches_are_sent_as_they_are_and_their_offsets_committed(harness, raw_producer, tmp_path):
    write_batches(tmp_path, range(6))
    files = sorted(tmp_path.iterdir())
    task = new_task(harness, tmp_path, stop="true")
    task.launch()
    await harness.until(lambda: task.is_done)
    await task.stop()
    assert task._producer.sent == [("t", 1, [path.read_bytes()]) for path in files]
    assert (task.polled, task.acked) == (6, 6)
    assert task._task.committed == [(path.name, 0) for path in files]
    (offset,) = harness.store.offsets.values()
    assert json.loads(offset) == {"file": files[-1].name}


async def test_no_offset_is_committed_before_the_acknowledgement(harness, raw_producer, tmp_path):
    raw_producer.acking = False
    write_batches(tmp_path, range(2))
    task = new_task(harness, tmp_path)
    task.launch()
    await harness.until(lambda: task._producer is not None and task._producer.sent)
    await task._commit()
    assert harness.store.offsets == {}
    assert task.queued()["unanswered_sends"] == 1
    task._producer.futures[0].set_result(40)
    await harness.until(lambda: harness.store.offsets and task._task.committed)
    assert task._task.committed[0][1] == 40
    await task.stop()


async def test_no_batch_is_polled_while_the_producer_has_no_room(
    harness, raw_producer, tmp_path, monkeypatch
):
    room = asyncio.Event()
    send = raw_producer.send_batch

    async def wait_for_room(self, topic, partition, batch):
        await room.wait()
        return await send(self, topic, partition, batch)

    monkeypatch.setattr(raw_producer, "send_batch", wait_for_room)
    write_batches(tmp_path, range(12))
    task = new_task(harness, tmp_path)
    task.launch()
    await harness.until(lambda: task.polled == 4)
    for _ in range(20):
        await asyncio.sleep(0)
    assert task.polled == 4
    room.set()
    await harness.until(lambda: task.acked == 12)
    await task.stop()


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (ErrorCode.INVALID_RECORD, "INVALID_RECORD"),
        (ErrorCode.MESSAGE_TOO_LARGE, "producer.override.max.request.size"),
    ],
)
async def test_a_refused_batch_fails_the_task(harness, raw_producer, tmp_path, monkeypatch, code, message):
    async def refuse(self, topic, partition, batch):
        raise KafkaError(code, "refused")

    monkeypatch.setattr(raw_producer, "send_batch", refuse)
    write_batches(tmp_path, range(2))
    task = new_task(harness, tmp_path)
    task.launch()
    await harness.in_state(task, State.FAILED)
    assert message in task.status.trace
    assert harness.store.offsets == {}


async def test_a_damaged_batch_fails_the_task_unsent(harness, raw_producer, tmp_path):
    write_batches(tmp_path, range(2))
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    task = new_task(harness, tmp_path)
    task.launch()
    await harness.in_state(task, State.FAILED)
    assert "poll returned a batch for t-1 that cannot be read: batch CRC" in task.status.trace
    assert task._producer.sent == []


def test_a_sound_batch_is_not_copied():
    data = build_batch(RECORDS, codec=Codec.ZSTD)
    sent = passed(RawBatch("t", 0, data))
    assert sent.data.obj is data
    assert sent.records == 3


def test_a_batch_with_gaps_is_built_anew_with_its_codec():
    data = build_batch(RECORDS, codec=Codec.GZIP)
    records = decode_records(data)
    gaps = rebuild_batch(read_header(data), records[1:])
    sent = passed(RawBatch("t", 0, gaps))
    assert [r[1:] for r in decode_records(sent.data)] == RECORDS[1:]
    header = read_header(sent.data)
    assert (header.codec, header.count, header.last_offset_delta) == (Codec.GZIP, 2, 1)
    assert passed(RawBatch("t", 0, rebuild_batch(read_header(data), []))) == (b"", 0)


def test_log_append_time_stays():
    data = bytearray(build_batch(RECORDS))
    assign_append_time(data, 123_456)
    sent = passed(RawBatch("t", 0, data))
    assert read_header(sent.data).timestamp_type == 0
    assert {r[1] for r in decode_records(sent.data)} == {123_456}


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (RawBatch("t", 0, build_batch(RECORDS) + b"x"), "return each batch as one RawBatch"),
        (RawBatch("t", 0, b"short"), "5 bytes are no batch header"),
        (RawBatch("t", 0, MARKER), "leave transaction markers out"),
        (RawBatch("", 0, build_batch(RECORDS)), "needs a topic"),
        (RawBatch("t", -1, build_batch(RECORDS)), "t--1: it needs a topic and a partition from 0 on"),
    ],
)
def test_what_is_no_batch_is_refused(batch, message):
    with pytest.raises(DataError, match=message):
        passed(batch)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("transforms", "a"),
        ("value.converter", "json"),
        ("header.converter", "simple"),
        ("errors.tolerance", "all"),
        ("errors.deadletterqueue.topic.name", "dead"),
    ],
)
def test_settings_of_single_records_are_refused(tmp_path, key, value):
    worker = WorkerConfig.parse({"offset.storage.file.filename": str(tmp_path / "o")})
    config = {"name": "c", "connector.class": KEY, "folder": str(tmp_path), "topic": "t"}
    assert check_config(worker, config).name == "c"
    extra = {"transforms.a.type": "Filter"} if key == "transforms" else {}
    with pytest.raises((ConfigError, InvalidConfig), match="written without decoding"):
        check_config(worker, config | {key: value} | extra)
    report = report_config(worker, config | {key: value} | extra)
    assert [each["value"]["name"] for each in report["configs"] if each["value"]["errors"]] == [key]
