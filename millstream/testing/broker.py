"""The broker as a test holds it: where it is, what it contains, and what can befall it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from logd.errors import ErrorCode, KafkaError
from millstream.testing.assertions import Key, exactly_once, lag_told
from millstream.testing.faults import Faults
from millstream.testing.process import ProcessHost
from millstream.testing.records import ReadRecord, Text, new_record
from millstream.testing.report import report
from millstream.testing.request import Request

if TYPE_CHECKING:
    from millstream.testing.client import SyncClient
    from millstream.testing.host import Host

LOOK_AGAIN_S = 0.02
WAIT_S = 10.0


class Broker:
    """Kafka for a test, as a context manager or by `start` and `stop`.

    `config`: Kafka's keys, on top of `settings.DEFAULTS`. `in_process`: a thread of this process instead of a
    process. `folder`: where data and output are; a temporary folder that goes in the end unless it is given.
    `faults`: what can be done to its clients.

    BrokerError where it does not start or cannot do what it is asked.
    """

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        in_process: bool = False,
        folder: Path | str | None = None,
    ) -> None:
        self._host = _host(dict(config or {}), in_process, folder)
        self._client: SyncClient | None = None
        self.faults = Faults(self._host)

    # Life

    def start(self) -> Self:
        """Start, or after `kill` start again, at the same address with the same data."""
        self._host.folder.mkdir(parents=True, exist_ok=True)
        self._host.start()
        return self

    def stop(self) -> None:
        """End it. A temporary folder goes with it."""
        if self._client is not None:
            client, self._client = self._client, None
            client.close()
        self._host.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def clean(self) -> None:
        """Have everything as new: no topics, groups, transactional ids, faults; the real time.

        Clients stay connected, unless the clock, the disk or the broker's settings were touched, or it was
        killed: then it begins anew, at the same address.
        """
        self._host.resume()
        if not self._host.is_running:
            self._host.start()
        self._host.ask("clean")

    @property
    def bootstrap_servers(self) -> str:
        """``host:port``, for clients."""
        return f"127.0.0.1:{self._host.port}"

    @property
    def folder(self) -> Path:
        """Where its data and its output are."""
        return self._host.folder

    @property
    def in_process(self) -> bool:
        """Whether it runs in this process."""
        return self._host.in_process

    @property
    def log(self) -> str:
        """What it has said, if it is a process; of a thread see Python's logging."""
        return self._host.log

    # What befalls it

    def restart(self) -> None:
        """Stop cleanly and start again: connections are lost, the data stays, a full disk has room again."""
        self._host.resume()
        if self._host.is_running:
            self._host.ask("restart")
        else:
            self._host.start()

    def kill(self) -> None:
        """End the process by SIGKILL; `start` brings it back. BrokerError with `in_process`."""
        self._host.kill()

    def pause(self) -> None:
        """Have it stand still: connections stay, nothing is answered, until `resume`."""
        self._host.pause()

    def resume(self) -> None:
        """End a pause."""
        self._host.resume()

    def advance(self, time: timedelta | float) -> None:
        """Put the broker's clock forward, by a timedelta or seconds; it goes on from there by itself.

        Sessions of groups and transactions whose time is over end (transactions within a second), retention
        is applied before this returns. The real time comes back with `clean`.
        """
        seconds = time.total_seconds() if isinstance(time, timedelta) else float(time)
        if seconds < 0:
            raise ValueError(f"the clock cannot be put back ({seconds} s): clean() brings back the real time")
        self._host.ask("advance", seconds=seconds)

    # Topics and records

    def topic(self, name: str, partitions: int = 1, config: Mapping[str, object] | None = None) -> str:
        """Create a topic, with Kafka's topic keys; its name."""
        configs = {key: str(value) for key, value in (config or {}).items()}
        self._host.ask("create_topic", name=name, partitions=partitions, configs=configs)
        return name

    def produce(
        self,
        topic: str,
        values: Iterable[Text | tuple[Text, Text]],
        *,
        partition: int | None = None,
        headers: Mapping[str, Text] | None = None,
        timestamp: int | None = None,
    ) -> None:
        """Write records: values, or pairs of key and value, and wait until they are acknowledged.

        A topic that is not there is created. Records go where Kafka's default partitioner has them, unless
        `partition` says. `timestamp` is in milliseconds since 1970. KafkaError.
        """
        from millstream.testing import client

        records = [new_record(value, headers, timestamp) for value in values]
        self._ask_client().run(
            lambda asked: client.produce(asked, topic, records, partition), creates_topics=True
        )

    def records(self, topic: str) -> list[ReadRecord]:
        """All committed records of a topic, by partition and offset. KafkaError where there is none."""
        from millstream.testing import client

        return self._ask_client().run(lambda asked: client.read(asked, topic))

    def wait_for_records(self, topic: str, count: int, *, seconds: float = WAIT_S) -> list[ReadRecord]:
        """`records`, as soon as there are so many; AssertionError when there are not in time. The topic need
        not be there yet.
        """
        deadline = time.monotonic() + seconds
        while len(found := self._records_so_far(topic)) < count:
            if time.monotonic() > deadline:
                raise AssertionError(f"{len(found)} records in {topic!r} after {seconds:g} s, not {count}")
            time.sleep(LOOK_AGAIN_S)
        return found

    def _records_so_far(self, topic: str) -> list[ReadRecord]:
        try:
            return self.records(topic)
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return []

    # Assertions

    def wait_lag_zero(self, group: str, topics: Collection[str] = (), *, seconds: float = WAIT_S) -> None:
        """Wait until a group has committed all records of the partitions it has committed offsets for, and of
        all partitions of `topics`; AssertionError, saying what is left, when it has not in time.
        """
        from millstream.testing import client

        names = [topics] if isinstance(topics, str) else list(topics)
        deadline = time.monotonic() + seconds
        while True:
            unread = self._ask_client().run(lambda asked: client.unread(asked, group, names))
            if unread and not any(unread.values()):
                return
            if time.monotonic() > deadline:
                raise AssertionError(f"after {seconds:g} s {lag_told(group, unread)}")
            time.sleep(LOOK_AGAIN_S)

    def assert_exactly_once(
        self, topic: str, *, key: Key | None = None, expected: Iterable[object] | None = None
    ) -> None:
        """Have each key once among a topic's committed records; with `expected`, all of these and no other.

        `key` makes it of a record (`key=lambda record: record.value`); without it it is the record's key, in
        bytes. AssertionError with offsets.
        """
        exactly_once(self.records(topic), key, expected)

    def requests(self) -> list[Request]:
        """The last requests (`requests.KEPT` at most) since the start or `clean`, the oldest first."""
        return [Request(*request) for request in self._host.ask("requests")]

    def report(self) -> str:
        """Where topics end, and the last requests: what a failed test prints."""
        return report(self._host)

    def _ask_client(self) -> SyncClient:
        if self._client is None:
            from millstream.testing.client import SyncClient

            self._client = SyncClient(lambda: self.bootstrap_servers)
        return self._client


def _host(config: Mapping[str, object], in_process: bool, folder: Path | str | None) -> Host:
    keeps = folder is not None
    # Resolved: on macOS the temporary folder is a link, and a broker tells of real names.
    home = Path(folder if folder is not None else tempfile.mkdtemp(prefix="millstream-")).resolve()
    if in_process:
        from millstream.testing.in_process import ThreadHost

        return ThreadHost(home, config, keeps=keeps)
    return ProcessHost(home, config, keeps=keeps)
