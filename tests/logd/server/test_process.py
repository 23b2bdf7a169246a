"""The process: its ready line, signals, restarts, locks, and settings it refuses."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_client.records import decode_records
from kafka_client.wire.messages.init_producer_id import InitProducerIdRequest
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.depth import deep, sample
from tests.support.logd_process import LogdProcess
from tests.support.metadata_folder import as_apache_kafka_leaves_it
from tests.support.raw_client import RawClient


def make(client: RawClient, name: str) -> bytes:
    topic: bytes = (
        client.request(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 12).topics[0].topic_id
    )
    return topic


def test_one_line_when_ready(tmp_path: Path) -> None:
    with LogdProcess(tmp_path, {"node.id": "7"}) as logd:
        pattern = r"logd ready at 127\.0\.0\.1:\d+ \(node 7, cluster [\w-]{22}, 0 partitions, \d+\.\d\d s\)"
        assert re.fullmatch(pattern, logd.log.strip())


def test_a_log_for_programs_has_an_object_a_line(tmp_path: Path) -> None:
    logd = LogdProcess(tmp_path, {"node.id": "7", "auto.create.topic.enable": "false"})
    logd.environment["MILLSTREAM_LOG_FORMAT"] = "json"
    with logd:
        with logd.connect() as client:
            client.sendall(struct.pack(">ihhih", 10, 999, 0, 4711, -1))
            assert client.recv(1) == b""
        logd.stop()
    _, *lines = sorted(logd.log.splitlines(), key=lambda line: line.startswith("{"))
    records = [json.loads(line) for line in lines]
    assert {record["broker"] for record in records} == {7}
    (refused,) = [record for record in records if "asked for API 999" in record["message"]]
    assert (refused["api_key"], refused["api_version"], refused["correlation_id"]) == (999, 0, 4711)
    levels = {record["logger"]: record["level"] for record in records}
    assert levels["logd"] == "INFO", "its last line says that it has stopped"


def test_others_cannot_read_its_files(tmp_path: Path) -> None:
    with LogdProcess(tmp_path) as logd:
        with RawClient(logd.port) as client:
            make(client, "t")
            client.produce("t", [(1, b"k", b"v", ())])
        logd.stop()
    data = tmp_path / "data"
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (data, *data.rglob("*"))}
    assert any(path.name == "t-0" for path in modes)
    assert not {path.name: oct(mode) for path, mode in modes.items() if mode & 0o027}


@contextmanager
def hangups(handling: signal.Handlers) -> Iterator[None]:
    """Set how SIGHUP is handled in children. The tests themselves may run under nohup."""
    before = signal.signal(signal.SIGHUP, handling)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


@deep
@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_clean_stop_leaves_the_marker_and_everything_is_there_again(
    tmp_path: Path, signal_number: signal.Signals
) -> None:
    logd = LogdProcess(tmp_path)
    with hangups(signal.SIG_DFL), logd:
        with RawClient(logd.port) as client:
            topic_id = make(client, "t")
            client.produce("t", [(1, b"k", b"v", ())])
            first_producer = client.request(InitProducerIdRequest(), 4).producer_id
            client.send_fetch("t", 1, max_wait_ms=60_000)
            os.kill(logd.pid, signal_number)
            assert logd.wait() == 0
        assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
        logd.start()
        assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()
        with RawClient(logd.port) as client:
            assert make(client, "t") == topic_id
            assert decode_records(client.fetch("t").records)[0][3] == b"v"
            assert client.produce("t", [(1, b"k", b"w", ())]).base_offset == 1
            assert client.request(InitProducerIdRequest(), 4).producer_id != first_producer
    assert "Traceback" not in logd.log


def test_a_hangup_is_ignored_under_nohup(tmp_path: Path) -> None:
    with hangups(signal.SIG_IGN), LogdProcess(tmp_path) as logd, RawClient(logd.port) as client:
        os.kill(logd.pid, signal.SIGHUP)
        make(client, "t")
        assert logd.stop() == 0


@deep
def test_after_a_kill_it_recovers_what_was_acknowledged(tmp_path: Path) -> None:
    logd = LogdProcess(tmp_path)
    with logd:
        with RawClient(logd.port) as client:
            topic_id = make(client, "t")
            for number in range(100):
                assert client.produce("t", [(1, b"k", b"%d" % number, ())]).base_offset == number
        logd.kill()
        with (tmp_path / "data" / "t-0" / f"{0:020}.log").open("ab") as segment:
            segment.write(b"\0" * 30)
        logd.start()
        with RawClient(logd.port) as client:
            assert make(client, "t") == topic_id
            assert client.fetch("t").high_watermark == 100
            assert client.produce("t", [(1, b"k", b"v", ())]).base_offset == 100


@deep
def test_idempotence_survives_a_kill(tmp_path: Path) -> None:
    from kafka_client.records import build_batch

    def batch(producer_id: int, sequence: int) -> bytes:
        return build_batch(
            [(1, None, b"v", ())], producer_id=producer_id, producer_epoch=0, base_sequence=sequence
        )

    logd = LogdProcess(tmp_path)
    with logd:
        with RawClient(logd.port) as client:
            make(client, "t")
            producer_id = client.request(InitProducerIdRequest(), 4).producer_id
            assert client.produce("t", batch(producer_id, 0)).base_offset == 0
            assert client.produce("t", batch(producer_id, 1)).base_offset == 1
        logd.kill()
        logd.start()
        with RawClient(logd.port) as client:
            assert client.produce("t", batch(producer_id, 1)).base_offset == 1
            assert client.produce("t", batch(producer_id, 2)).base_offset == 2
            assert client.fetch("t").high_watermark == 3


@deep
def test_topics_created_and_deleted_before_a_kill(tmp_path: Path) -> None:
    from kafka_client.wire.messages.delete_topics import DeleteTopicsRequest

    logd = LogdProcess(tmp_path)
    with logd:
        with RawClient(logd.port) as client:
            make(client, "kept")
            make(client, "deleted")
            client.request(DeleteTopicsRequest(topic_names=["deleted"]), 5)
        logd.kill()
        logd.start()
        with RawClient(logd.port) as client:
            names = [topic.name for topic in client.request(MetadataRequest(topics=None), 12).topics]
            assert names == ["kept"]


@deep
def test_topics_found_on_disk_alone_are_taken_in(tmp_path: Path) -> None:
    """Topics that only have logs and topic ids on the disk are served, as in a log directory that Apache
    Kafka wrote. Our journal is missing there.
    """
    logd = LogdProcess(tmp_path)
    with logd:
        with RawClient(logd.port) as client:
            topic_id = make(client, "t")
            client.produce("t", [(1, b"k", b"v", ())])
        assert logd.stop() == 0
        as_apache_kafka_leaves_it(tmp_path / "data")
        logd.start()
        with RawClient(logd.port) as client:
            assert make(client, "t") == topic_id
            assert decode_records(client.fetch("t").records)[0][3] == b"v"


@deep
def test_a_second_process_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    with LogdProcess(tmp_path / "one", {"log.dirs": tmp_path / "data"}) as first:
        second = LogdProcess(tmp_path / "two", {"log.dirs": tmp_path / "data"})
        second.spawn()
        assert second.wait() == 1
        assert f"in use by process {first.pid}" in second.log
        assert "Traceback" not in second.log
        with RawClient(first.port) as client:
            make(client, "t")


@deep
def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with LogdProcess(tmp_path / "one") as first:
        second = LogdProcess(tmp_path / "two", {"listeners": f"PLAINTEXT://127.0.0.1:{first.port}"})
        second.spawn()
        assert second.wait() == 1
        assert second.log == (
            f"logd: cannot listen on 127.0.0.1:{first.port} (PLAINTEXT): Address already in use; "
            "stop the process that listens there (`ss -ltnp` names it), or set another port in listeners\n"
        )
    assert not (tmp_path / "two" / "data").exists()


@sample(1)
@pytest.mark.parametrize(
    ("listeners", "reason"),
    [
        ("PLAINTEXT://192.0.2.1:9092", "192.0.2.1:9092 (PLAINTEXT): Cannot assign requested address; this "),
        ("PLAINTEXT://no..where:9092", "no..where:9092 (PLAINTEXT): "),
        ("A://127.0.0.1:0,B://192.0.2.1:1", "192.0.2.1:1 (B): Cannot assign requested address; "),
    ],
)
def test_an_address_that_is_not_to_be_had_leaves_a_clean_folder_clean(
    tmp_path: Path, listeners: str, reason: str
) -> None:
    logd = LogdProcess(tmp_path)
    with logd:
        with RawClient(logd.port) as client:
            make(client, "t")
        assert logd.stop() == 0
    names = "A:PLAINTEXT,B:PLAINTEXT,PLAINTEXT:PLAINTEXT"
    logd.overrides |= {"listeners": listeners, "listener.security.protocol.map": names}
    logd.spawn()
    assert logd.wait() == 1
    assert f"logd: cannot listen on {reason}" in logd.log
    assert "Traceback" not in logd.log
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_a_bad_value_names_key_value_and_what_is_allowed(tmp_path: Path) -> None:
    logd = LogdProcess(tmp_path, {"num.partitions": "few"})
    logd.spawn()
    assert logd.wait() == 2
    assert logd.log.strip() == "logd: num.partitions=few is not allowed: a whole number of 32 bits, 1 or more"


def test_notes_and_warnings_stand_in_the_log(tmp_path: Path) -> None:
    with LogdProcess(tmp_path, {"num.partition": "1", "replica.lag.max.messages": "4000"}) as logd:
        assert "unknown setting num.partition; did you mean num.partitions?" in logd.log
        assert "replica.lag.time.max.ms" in logd.log


def test_a_properties_file_and_several_folders(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(f"num.partitions=4\nlog.dirs={tmp_path}/a,{tmp_path}/b\n")
    logd = LogdProcess(tmp_path, config=properties)
    del logd.overrides["log.dirs"]
    with logd:
        with RawClient(logd.port) as client:
            make(client, "t")
        assert logd.stop() == 0
    for folder in ("a", "b"):
        assert len(list((tmp_path / folder).glob("t-*"))) == 2


def test_the_soft_limit_of_open_files_is_raised_to_the_hard_one() -> None:
    script = (
        "import resource; hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))\n"
        "from logd.cli import raise_open_files_limit; raise_open_files_limit()\n"
        "assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
