"""A batch in the middle of a log was damaged: what every reader says, and how tolerant ones go on.

Offsets 0 and 1 are sound, 2 to 4 are the damaged batch, 5 is sound.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_client.errors import UnreadableBatch
from streams import KafkaStreams, StreamsBuilder, StreamsError, log_and_continue, log_and_fail
from tests.support.damaged_log import damage_batch
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.waiting import until

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


async def test_streams_stop_at_it_and_name_it(damaged: LogdProcess, tmp_path: Path) -> None:
    named = r"offsets 2 to 4 cannot be read: .*\(orders-0 offset 2\)"
    with pytest.raises(StreamsError, match=named):
        async with application(damaged, tmp_path, f"strict-{tmp_path.name}", log_and_fail) as app:
            await app.wait_until_caught_up()


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
async def test_streams_skip_it_where_the_handler_says_so(
    damaged: LogdProcess, tmp_path: Path, guarantee: str
) -> None:
    name = f"tolerant-{guarantee}-{tmp_path.name}"
    app = application(damaged, tmp_path, name, log_and_continue)
    async with app:
        await app.wait_until_caught_up()
        counts = dict(app.stores("counts")[0].all())  # type: ignore[attr-defined]
        assert counts == {"a": 1, "b": 1, "f": 1}
        await until(lambda: app.summary()["dropped_records"] == 3)


def test_dump_log_says_where_it_is_and_goes_on(damaged: LogdProcess) -> None:
    (segment,) = (damaged.folder / "data" / f"{TOPIC}-0").glob("*.log")
    done = millstream("dump-log", "--files", segment, "--print-data-log")
    output = done.stdout + done.stderr
    assert "the batch of offsets 2 to 4 at position" in output and "cannot be read" in output
    assert "payload: a" in done.stdout and "payload: f" in done.stdout
    assert done.returncode != 0


def run_sink(
    damaged: LogdProcess, tmp_path: Path, *keys: str
) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run a FilesSink until it is done. Return its process and what it wrote."""
    worker, connector = tmp_path / "worker.properties", tmp_path / "sink.properties"
    worker.write_text(
        f"bootstrap.servers={damaged.bootstrap}\nkey.converter=string\nvalue.converter=string\n"
        f"offset.storage.file.filename={tmp_path}/offsets\noffset.flush.interval.ms=50\n"
    )
    connector.write_text(
        f"name={tmp_path.name}\nconnector.class=FilesSink\ntopics={TOPIC}\npath={tmp_path}/out\n"
        + "\n".join(keys)
    )
    done = millstream("connect", "standalone", worker, connector, "--exit-when-done")
    files = sorted(path for path in (tmp_path / "out").rglob("*") if path.is_file())
    return done, "".join(path.read_text() for path in files)


def test_a_sink_delivers_what_is_before_it_and_names_it(damaged: LogdProcess, tmp_path: Path) -> None:
    done, written = run_sink(damaged, tmp_path)
    assert done.returncode != 0 and NAMED in done.stderr
    assert "a" in written and "f" not in written


def test_a_sink_that_tolerates_errors_goes_on_and_counts(damaged: LogdProcess, tmp_path: Path) -> None:
    done, written = run_sink(damaged, tmp_path, "errors.tolerance=all", "errors.log.enable=true")
    assert done.returncode == 0, done.stderr
    assert '"a"' in written and '"b"' in written and '"f"' in written
    assert NAMED in done.stderr
    assert '"records_delivered": 3, "records_skipped": 3' in done.stdout.splitlines()[-1]


def test_the_console_consumer_skips_it_where_that_is_asked_for(damaged: LogdProcess) -> None:
    options = ["--from-beginning", "--skip-message-on-error", "--timeout-ms", "3000"]
    server = ["--bootstrap-server", damaged.bootstrap]
    done = millstream("kafka-console-consumer", "--topic", TOPIC, *server, *options)
    assert done.stdout.split() == ["a", "b", "f"]
    assert "orders-0: offsets 2 to 4 left out: " in done.stderr
    assert "Processed a total of 6 messages" in done.stderr


def test_verify_says_where_it_is(damaged: LogdProcess) -> None:
    ends = ["--source", damaged.bootstrap, "--target", damaged.bootstrap]
    done = millstream("mirror", "verify", *ends, "--topic", f"{TOPIC}:{TOPIC}")
    assert done.returncode == 6
    assert f"the source's {TOPIC}-0 cannot be read at offsets 2 to 4: " in done.stderr


@pytest.mark.parametrize("fails", [True, False])
def test_spark_reads_up_to_it_or_without_it(damaged: LogdProcess, fails: bool) -> None:
    pytest.importorskip("pyarrow")
    from plugins.spark.arrow import read_arrow
    from plugins.spark.log_range import LogRange
    from plugins.spark.options import parse_options

    options = parse_options(
        {
            "kafka.bootstrap.servers": damaged.bootstrap,
            "subscribe": TOPIC,
            "failonunreadablebatch": str(fails).lower(),
        }
    )
    parts = read_arrow(options, LogRange(TOPIC, 0, 0, 6))
    if fails:
        with pytest.raises(UnreadableBatch, match=NAMED):
            list(parts)
    else:
        assert [offset for part in parts for offset in part["offset"].to_pylist()] == [0, 1, 5]
