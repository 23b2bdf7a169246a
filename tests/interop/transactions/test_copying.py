"""Consume, transform, produce: with the client and the broker killed in between, every record comes out once.

Fault model: SIGKILL of either process, or of both, right after any step of a transaction. The disk keeps what
was written. The killed client is started again with the same transactional id.
"""

from __future__ import annotations

import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kafka_client.records import NewRecord
from tests.interop.transactions.clients.base import LIBRARIES, load
from tests.interop.transactions.conftest import Broker
from tests.interop.transactions.copier import aborted, copied
from tests.support import depth
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic

PARTITIONS = 2
COUNT = 300
SECONDS = 300.0
"""Far more than logd needs; Apache Kafka takes several to start."""
STARTS_MAX = 25

KILLS = {
    "confluent": [("client", "flushed"), ("broker", "sent"), ("both", "offsets"), ("broker", "ended")],
    "aio": [("client", "offsets"), ("broker", "flushed"), ("both", "sent"), ("broker", "begun")],
    "python": [("client", "ended"), ("broker", "offsets"), ("both", "flushed"), ("broker", "sent")],
}
"""Whom to kill, right after which step; the steps of all libraries together are all there are."""


class Copier:
    """The process `copier`; its steps come through a queue, None is its end."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._command = command
        self._log = log
        self.starts = 0
        self.start()

    def start(self) -> None:
        self.starts += 1
        assert self.starts < STARTS_MAX, self.log
        self.steps: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        with self._log.open("ab") as errors:
            self.process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self._reader = threading.Thread(target=self._read, args=(self.process, self.steps))
        self._reader.start()

    @staticmethod
    def _read(process: subprocess.Popen[str], steps: queue.SimpleQueue[str | None]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            steps.put(line.strip())
        steps.put(None)

    def go_on(self) -> None:
        """Let it begin the next transaction: it cannot come to its end before the kills that are planned."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended
            self.process.stdin.write("\n")
            self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdin is not None and self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def story(self) -> str:
        """Its log with where it stands now, for when it does not come to its end."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGUSR1)
            time.sleep(1)
        return self.log


@contextmanager
def copier(command: list[str], log: Path) -> Iterator[Copier]:
    made = Copier(command, log)
    try:
        yield made
    finally:
        made.kill()


def fill(broker: Broker, topic: str) -> list[bytes]:
    """Values in all partitions of a topic."""
    values = [b"%d" % number for number in range(COUNT)]
    now = int(time.time() * 1000)
    with RawClient(broker.port) as client:
        for partition in range(PARTITIONS):
            records: list[NewRecord] = [(now, None, value, ()) for value in values[partition::PARTITIONS]]
            client.produce(topic, records, partition=partition)
    return values


@depth.deep
@pytest.mark.parametrize("name", depth.first(1, LIBRARIES))
def test_kills(name: str, tmp_path: Path, new_broker: Callable[[Path], Broker]) -> None:
    library = load(name)
    broker = new_broker(tmp_path / "broker")
    with broker:
        create_topic(broker, "source", partitions=PARTITIONS)
        create_topic(broker, "target", partitions=PARTITIONS)
        values = fill(broker, "source")
        module = "tests.interop.transactions.copier"
        facts = [name, broker.bootstrap, "source", "target", str(PARTITIONS), str(COUNT)]
        with copier([sys.executable, "-m", module, *facts], tmp_path / "copier.log") as client:
            kill_on_the_way(broker, client, KILLS[name])
        committed = library.read(broker.bootstrap, "target", PARTITIONS, committed=True)
        everything = library.read(broker.bootstrap, "target", PARTITIONS, committed=False)
        assert committed == sorted(map(copied, values)), client.log
        assert set(everything) - set(committed) <= set(map(aborted, values))
        assert set(everything) > set(committed), "nothing was ever aborted"
        assert "Traceback" not in broker.log


def kill_on_the_way(broker: Broker, client: Copier, planned: Sequence[tuple[str, str]]) -> None:
    """Kill as planned, two whole transactions apart; then let the client come to its end."""
    kills = iter(planned)
    whom, after = next(kills)
    ended = 0
    deadline = time.monotonic() + SECONDS
    while True:
        assert time.monotonic() < deadline, client.story + broker.log[-3000:]
        try:
            step = client.steps.get(timeout=1)
        except queue.Empty:
            continue
        if step == "done":
            assert whom == "", f"not killed: {whom} after {after}"
            return
        if step is None:
            client.kill()
            client.start()
        if step == "ended":
            ended += 1
            client.go_on()
        if step == after and ended > 1:
            if whom in ("broker", "both"):
                broker.kill()
            if whom in ("client", "both"):
                client.kill()
            if whom in ("broker", "both"):
                broker.start()
            if whom in ("client", "both"):
                client.start()
            ended = 0
            whom, after = next(kills, ("", ""))
