"""A broker that clients misbehave towards, and a bystander that must not notice."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_client.records import decode_records
from logd.server.receive_buffers import KEPT_BYTES_MAX
from tests.support.logd_process import LogdProcess
from tests.support.memory_folder import memory_folder
from tests.support.raw_client import RawClient
from tests.support.sample_requests import sample_frame, served
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

GROWTH_MAX = 24_000_000 + KEPT_BYTES_MAX
"""Bytes a broker's memory may have grown after being mistreated: allocator slack and receive buffers kept for
the next, not what was sent."""
PEAK_GROWTH_MAX = GROWTH_MAX
"""Bytes by which it may have been larger at any moment meanwhile."""

MODELLED = (
    "test_broker_kill_and_power_loss.py",
    "test_broker_power_loss.py",
    "test_crash_points.py",
    "test_follower.py",
    "test_log_dirs_power_loss.py",
    "test_losses_in_a_row.py",
    "test_model.py",
    "test_power_loss.py",
    "test_truncation_power_loss.py",
)
"""Here a disk's fate is a model's: where its files are makes no difference, but for how long it takes."""

_numbers = itertools.count()


@pytest.fixture
def tmp_path(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """In memory for those that have a model of a disk."""
    if request.path.name not in MODELLED:
        yield tmp_path
        return
    with memory_folder(tmp_path) as folder:
        yield folder


@pytest.fixture(scope="session")
def logd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    """Start a broker that has answered one of every request, so that all its modules are in memory."""
    settings = {"socket.listen.backlog.size": 4000}
    with LogdProcess(tmp_path_factory.mktemp("faults"), settings) as process:
        for key, version in served():
            with RawClient(process.port) as client:
                client.send(sample_frame(key, version))
                assert client.receive_frame() is not None, f"API {key} version {version}"
        yield process


@pytest.fixture
def new_name() -> Callable[[str], str]:
    """Names no other test uses."""
    return lambda prefix="topic": f"{prefix}-{next(_numbers)}"


class Bystander:
    """Writes and reads back on its own connection, over and over, in a thread."""

    def __init__(self, logd: LogdProcess, topic: str) -> None:
        self._topic = create_topic(logd, topic)
        self._client = RawClient(logd.port)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bystander")
        self._error: BaseException | None = None
        self.rounds = 0
        self._thread.start()
        wait_for(lambda: self.rounds > 0 or not self._thread.is_alive())

    def _run(self) -> None:
        try:
            while not self._stop.wait(0.001):
                value = b"%d" % self.rounds
                assert self._client.produce(self._topic, [(1, None, value, ())]).base_offset == self.rounds
                records = decode_records(self._client.fetch(self._topic, self.rounds).records)
                assert records == [(self.rounds, 1, None, value, ())]
                self.rounds += 1
        except BaseException as error:
            self._error = error

    def finish(self, rounds: int) -> None:
        """Stop after so many more rounds; raises what went wrong in any of them."""
        target = self.rounds + rounds
        wait_for(lambda: self.rounds >= target or not self._thread.is_alive())
        self._stop.set()
        self._thread.join()
        self._client.close()
        if self._error is not None:
            raise self._error


@pytest.fixture
def peak_growth_max() -> int:
    """See `PEAK_GROWTH_MAX`; a test whose request is rightly held in memory as a whole says so by another."""
    return PEAK_GROWTH_MAX


@pytest.fixture
def bystander(logd: LogdProcess, new_name: Callable[[str], str], peak_growth_max: int) -> Iterator[None]:
    """Another client's round trips go on during the test and after it; the broker's memory does not grow."""
    with undisturbed(logd, new_name("bystander"), peak_growth_max):
        yield
    assert "Traceback" not in logd.log


@contextmanager
def undisturbed(logd: LogdProcess, topic: str, peak_growth_max: int = PEAK_GROWTH_MAX) -> Iterator[None]:
    """Check memory and a bystander as ``bystander`` does, for a broker of the test's own."""
    bystander = Bystander(logd, topic)
    before, low = logd.rss_bytes, logd.forget_peak()
    try:
        yield
    finally:
        bystander.finish(rounds=20)
    # The broker releases the last connections' memory when it finds them closed.
    wait_for(lambda: logd.rss_bytes - before < GROWTH_MAX)
    assert logd.peak_bytes - low < peak_growth_max
