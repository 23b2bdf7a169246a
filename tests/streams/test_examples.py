"""The stream examples run."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from examples import streams_flight_delays as delays
from examples import streams_payments as payments
from examples import streams_word_count as words
from kafka_client import Admin, BatchProducer, Client, NewTopic
from streams import KafkaStreams
from streams.serdes import Long
from streams.testing import TopologyTestDriver
from tests.streams.support.counting import read_last
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess

DAY_MS = 86_400_000
EXAMPLES = Path(delays.__file__).parent


def test_flight_delays() -> None:
    with TopologyTestDriver(delays.topology()) as driver:
        airlines = driver.input_topic("airlines")
        flights = driver.input_topic("flights")
        airlines.pipe_input("UA", delays.Airline("United Air Lines Inc."), 0)
        january, october = 15706 * DAY_MS, 15979 * DAY_MS
        flights.pipe_input("UA", delays.Flight(517, 2.0), january)
        flights.pipe_input("UA", delays.Flight(830, -1.0), october)
        flights.pipe_input("UA", delays.Flight(None, None), january)
        flights.pipe_input("UA", delays.Flight(600, 4.0), january)
        flights.pipe_input("XX", delays.Flight(600, 4.0), january)  # no such airline
        output = driver.output_topic("airline-delays").read_table()
    assert output["UA 2013-01-01"] == delays.Day(
        airline="UA",
        name="United Air Lines Inc.",
        day="2013-01-01",
        departures=2,
        cancellations=1,
        delay_minutes=6.0,
        mean_delay=3.0,
    )
    assert set(output) == {"UA 2013-01-01", "UA 2013-10-01"}


def test_payments() -> None:
    with TopologyTestDriver(payments.topology()) as driver:
        records = [("a", payments.Payment(10.0, "USD")), ("b", payments.Payment(2000.0, "EUR"))]
        driver.input_topic("payments").pipe_many(records)
        output = driver.output_topic("scored-payments").read_table()
    assert output["a"] == payments.Payment(10.0, "USD", 9.0, 0.0045)
    assert output["b"] == payments.Payment(2000.0, "EUR", 2000.0, 1.0)


def test_word_count_over_a_broker(logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]) -> None:
    """Word count runs as two sub-topologies, joined by a repartition topic."""
    lines, counted = new_name("lines"), new_name("words")

    async def run() -> dict[bytes, int]:
        async with Client(logd.bootstrap) as client:
            await Admin(client).create_topics([NewTopic(lines, 3, 1), NewTopic(counted, 2, 1)])
            async with BatchProducer(client) as producer:
                for number in range(300):
                    text = f"all streams lead to w{number % 7}".encode()
                    await producer.send(lines, number % 3, [(number, None, text, ())])
        app = KafkaStreams(
            words.topology(lines, counted),
            application_id=f"{lines}-app",
            bootstrap_servers=logd.bootstrap,
            state_dir=str(tmp_path),
        )
        async with app:
            async with asyncio.timeout(60):
                await app.wait_until_caught_up()
            assert len(app.tasks) == 6
        output = await read_last(logd.bootstrap, counted)
        return {word: Long().deserialize(value or b"") for word, value in output.items()}

    counts = asyncio.run(run())
    assert counts[b"streams"] == 300
    assert counts[b"w0"] == 43
    assert len(counts) == 11


@deep
@pytest.mark.parametrize(
    "name", ["streams_flight_delays:topology", "streams_payments:topology", "streams_word_count:topology"]
)
def test_describe_command(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "millstream", "streams", "describe", name],
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("Topologies:\n   Sub-topology: 0\n    Source: KSTREAM-SOURCE-")


@deep
def test_run_command(logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]) -> None:
    name = new_name("run")
    program = tmp_path / "program.py"
    program.write_text(
        f"from examples.streams_word_count import topology as make\n"
        f"def topology():\n    return make('{name}-in', '{name}-out')\n"
    )

    async def prepare() -> None:
        async with Client(logd.bootstrap) as client:
            await Admin(client).create_topics([NewTopic(f"{name}-in", 1, 1), NewTopic(f"{name}-out", 1, 1)])
            async with BatchProducer(client) as producer:
                acked = await producer.send(f"{name}-in", 0, [(1, None, b"to be or not to be", ())])
                assert await acked == 0

    asyncio.run(prepare())
    arguments = ["--bootstrap-server", logd.bootstrap, "--application-id", name, "--exit-when-caught-up"]
    arguments += ["--override", f"state.dir={tmp_path / 'state'}"]
    done = subprocess.run(
        [sys.executable, "-m", "millstream", "streams", "run", "program:topology", *arguments],
        cwd=tmp_path,
        env={"PYTHONPATH": str(EXAMPLES.parent)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["state"] for line in lines if line["event"] == "status"][:2] == ["REBALANCING", "RUNNING"]
    assert lines[-1]["event"] == "stopped"
    assert lines[-1]["records_in"] == 1 + 6, (done.stdout, done.stderr)
