"""A batch of less than 1 MB that holds 700,000 records: who reads it holds a part of them at a time.

As objects they take more than 150 MB; a process that reads one record takes 40.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_client.records import Codec, build_batch
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient

TOPIC = "many"
RECORDS = 700_000
MEMORY_MAX = 90 * 2**20

STREAMS = """
import asyncio, sys
from streams import KafkaStreams, StreamsBuilder

seen = 0
def see(key, value):
    global seen
    seen += 1

async def main(bootstrap, topic, folder):
    builder = StreamsBuilder(key_serde=bytes, value_serde=bytes)
    builder.stream(topic).foreach(see)
    app = KafkaStreams(
        builder.build(), application_id="many", bootstrap_servers=bootstrap, state_dir=folder, poll_ms=20
    )
    async with app:
        await app.wait_until_caught_up()
    print(seen)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def logd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    with LogdProcess(tmp_path_factory.mktemp("many")) as logd:
        create = [sys.executable, "-m", "millstream", "topic", "create", TOPIC, "-b", logd.bootstrap]
        subprocess.run(create, check=True, timeout=100, stdout=subprocess.DEVNULL)
        batch = build_batch([(1000, None, None, ())] * RECORDS, codec=Codec.GZIP)
        with RawClient(logd.port) as raw:
            assert raw.produce(TOPIC, batch).error_code == 0
        yield logd


def peak_of(command: list[str], output: Path) -> int:
    """Run it to its end. Return the most memory it had, in bytes."""
    peak = 0
    with output.open("wb") as file, subprocess.Popen(command, stdout=file) as process:
        deadline = time.monotonic() + 100
        while process.poll() is None:
            assert time.monotonic() < deadline
            status = Path(f"/proc/{process.pid}/status").read_text()
            peak = max([peak, *(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line)])
            time.sleep(0.01)
    assert process.returncode == 0
    return peak * 1024


def test_consume(logd: LogdProcess, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "millstream", "consume", TOPIC, "--exit", "-f", "%o\n"]
    assert peak_of([*command, "-b", logd.bootstrap], tmp_path / "printed") < MEMORY_MAX
    assert len((tmp_path / "printed").read_text().splitlines()) == RECORDS


def test_a_sink(logd: LogdProcess, tmp_path: Path) -> None:
    worker, connector = tmp_path / "worker.properties", tmp_path / "sink.properties"
    worker.write_text(
        f"bootstrap.servers={logd.bootstrap}\nkey.converter=string\nvalue.converter=string\n"
        f"offset.storage.file.filename={tmp_path}/offsets\n"
    )
    connector.write_text(f"name=many\nconnector.class=FilesSink\ntopics={TOPIC}\npath={tmp_path}/out\n")
    command = [sys.executable, "-m", "millstream", "connect", "standalone", str(worker), str(connector)]
    assert peak_of([*command, "--exit-when-done"], tmp_path / "printed") < MEMORY_MAX
    assert f'"records_delivered": {RECORDS}' in (tmp_path / "printed").read_text()


def test_a_streams_instance(logd: LogdProcess, tmp_path: Path) -> None:
    command = [sys.executable, "-c", STREAMS, logd.bootstrap, TOPIC, str(tmp_path / "state")]
    assert peak_of(command, tmp_path / "printed") < MEMORY_MAX
    assert (tmp_path / "printed").read_text().strip() == str(RECORDS)
