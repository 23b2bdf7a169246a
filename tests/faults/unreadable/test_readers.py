"""A batch in the middle of a log was damaged: what every reader says, and how tolerant ones go on.

Offsets 0 and 1 are sound, 2 to 4 are the damaged batch, 5 is sound.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams import KafkaStreams, StreamsBuilder, StreamsError, log_and_continue, log_and_fail
from tests.streams.running import run, until
from tests.support.damaged_log import damage_batch
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient

TOPIC = "orders"
NAMED = "orders-0: the batch of offsets 2 to 4 cannot be read"


@pytest.fixture(scope="module", params=[False, True], ids=["wrong crc", "right crc"])
def damaged(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LogdProcess]:
    with LogdProcess(tmp_path_factory.mktemp("damaged")) as logd:
        assert millstream("topic", "create", TOPIC, "-b", logd.bootstrap).returncode == 0
        with RawClient(logd.port) as raw:
            for values in ((b"a", b"b"), (b"c" * 20, b"d", b"e"), (b"f",)):
                answer = raw.produce(TOPIC, [(1000, b"k", value, ()) for value in values])
                assert answer.error_code == 0
        logd.stop()
        damage_batch(logd.folder / "data", TOPIC, 3, right_crc=request.param)
        logd.start()
        yield logd


def millstream(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "millstream", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize("command", ["consume", "kafka-console-consumer"])
def test_consume_prints_what_is_before_it_and_names_it(damaged: LogdProcess, command: str) -> None:
    topic = [TOPIC, "--exit"] if command == "consume" else ["--topic", TOPIC, "--from-beginning"]
    done = millstream(command, *topic, "--bootstrap-server", damaged.bootstrap)
    assert done.returncode == (1 if command == "consume" else 0), "Kafka's own tool ends with 0"
    assert [line.split()[-1] for line in done.stdout.splitlines()] == ["a", "b"]
    assert NAMED in done.stderr and "seek to offset 5" in done.stderr


def test_consume_skips_it_where_errors_are_to_be_skipped(damaged: LogdProcess) -> None:
    done = millstream("consume", TOPIC, "--exit", "--skip-errors", "-f", "%v\\n", "-b", damaged.bootstrap)
    assert done.stdout.split() == ["a", "b", "f"]
    assert "orders-0: offsets 2 to 4 left out: " in done.stderr
    assert "3 records left out" in done.stderr and done.returncode == 6


def application(damaged: LogdProcess, folder: Path, name: str, handler: object) -> KafkaStreams:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.stream(TOPIC).group_by(lambda key, value: value).count(store="counts")
    return KafkaStreams(
        builder.build(),
        application_id=name,
        bootstrap_servers=damaged.bootstrap,
        state_dir=str(folder),
        deserialization_exception_handler=handler,
        poll_ms=20,
    )


def test_streams_stop_at_it_and_name_it(damaged: LogdProcess, tmp_path: Path) -> None:
    async def case() -> None:
        named = r"offsets 2 to 4 cannot be read: .*\(orders-0 offset 2\)"
        with pytest.raises(StreamsError, match=named):
            async with application(damaged, tmp_path, f"strict-{tmp_path.name}", log_and_fail) as app:
                await app.wait_until_caught_up()

    run(case)


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_streams_skip_it_where_the_handler_says_so(
    damaged: LogdProcess, tmp_path: Path, guarantee: str
) -> None:
    async def case() -> None:
        name = f"tolerant-{guarantee}-{tmp_path.name}"
        app = application(damaged, tmp_path, name, log_and_continue)
        async with app:
            await app.wait_until_caught_up()
            counts = dict(app.stores("counts")[0].all())  # type: ignore[attr-defined]
            assert counts == {"a": 1, "b": 1, "f": 1}
            await until(lambda: app.summary()["dropped_records"] == 3)

    run(case)


def test_dump_log_says_where_it_is_and_goes_on(damaged: LogdProcess) -> None:
    (segment,) = (damaged.folder / "data" / f"{TOPIC}-0").glob("*.log")
    done = millstream("dump-log", "--files", segment, "--print-data-log")
    said = done.stdout + done.stderr
    assert "the batch of offsets 2 to 4 at position" in said and "cannot be read" in said
    assert "payload: a" in done.stdout and "payload: f" in done.stdout
    assert done.returncode != 0


def test_a_sink_delivers_what_is_before_it_and_names_it(damaged: LogdProcess, tmp_path: Path) -> None:
    worker, connector = tmp_path / "worker.properties", tmp_path / "sink.properties"
    worker.write_text(
        f"bootstrap.servers={damaged.bootstrap}\nkey.converter=string\nvalue.converter=string\n"
        f"offset.storage.file.filename={tmp_path}/offsets\noffset.flush.interval.ms=50\n"
    )
    connector.write_text(f"name=sink\nconnector.class=FilesSink\ntopics={TOPIC}\npath={tmp_path}/out\n")
    done = millstream("connect", "standalone", worker, connector, "--exit-when-done")
    assert done.returncode != 0 and NAMED in done.stderr
    written = "".join(path.read_text() for path in sorted((tmp_path / "out").rglob("*")) if path.is_file())
    assert "a" in written and "f" not in written
