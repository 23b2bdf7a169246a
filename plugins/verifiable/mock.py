"""MockSource and MockSink: connectors that do nothing, or fail after a while, for system tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from connect.api import (
    Config,
    ConnectError,
    ConnectorContext,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceConnector,
    SourceRecord,
    SourceTask,
    TopicPartition,
    setting,
)

_CONNECTOR_FAILURE = "connector-failure"
_TASK_FAILURE = "task-failure"
_WAIT_SECONDS = 0.1


class MockConfig(Config):
    """Does nothing; with a `mock_mode` the connector or its task fails after `delay_ms`, for system tests."""

    mock_mode: str | None = setting(
        "connector-failure or task-failure; any other value: nothing happens.", default=None, key="mock_mode"
    )
    delay_ms: int = setting("When the failure comes, in ms.", default=15_000, key="delay_ms", kind="LONG")


class _Failure:
    """A failure that is due some time after its config was read, if the config asks for it in `mode`."""

    def __init__(
        self, config: Mapping[str, str], mode: str, on_due: Callable[[], None] | None = None
    ) -> None:
        parsed = MockConfig.parse(config)
        self._delay_ms = parsed.delay_ms
        self._at = time.monotonic() + parsed.delay_ms / 1000
        self.is_planned = parsed.mock_mode == mode
        self._timer: threading.Timer | None = None
        if self.is_planned and on_due is not None:
            self._timer = threading.Timer(parsed.delay_ms / 1000, on_due)
            self._timer.daemon = True
            self._timer.start()

    def check(self) -> None:
        """Raise ConnectError if the failure is due."""
        if self.is_planned and time.monotonic() >= self._at:
            raise ConnectError(f"the mock fails {self._delay_ms} ms after its start, as mock_mode says")

    def cancel(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()


class MockSourceTask(SourceTask):
    """A task without records."""

    def __init__(self) -> None:
        self._stopping = threading.Event()

    def start(self, config: Mapping[str, str]) -> None:
        """Plan the failure."""
        self._failure = _Failure(config, _TASK_FAILURE)

    def poll(self) -> list[SourceRecord] | None:
        """Return None, or fail if it is time."""
        self._failure.check()
        self._stopping.wait(_WAIT_SECONDS)
        return None

    def stop(self) -> None:
        """End the wait of a poll."""
        self._stopping.set()


class MockSinkTask(SinkTask):
    """A task that drops its records."""

    def start(self, config: Mapping[str, str]) -> None:
        """Plan the failure, which the next commit shows: a topic without records makes no `put`."""
        self._failure = _Failure(config, _TASK_FAILURE, self.context.request_commit)

    def open(self, partitions: Collection[TopicPartition]) -> None:
        """Give every partition a position if the task is to fail, since without one nothing is committed."""
        if self._failure.is_planned:
            self.context.offset(dict.fromkeys(partitions, 0))

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Drop the records, or fail if it is time."""
        self._failure.check()

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Return the offsets, or fail if it is time."""
        self._failure.check()
        return offsets

    def stop(self) -> None:
        """Cancel the timer, if `start` got so far."""
        if hasattr(self, "_failure"):
            self._failure.cancel()


class _FailingConnector:
    """The part that both connectors share: one task, and a failure that may be the connector's."""

    context: ConnectorContext

    def start(self, config: Mapping[str, str]) -> None:
        """Plan the failure: the worker asks for a plan then, and gets the error."""
        self.config = dict(config)
        self._failure = _Failure(config, _CONNECTOR_FAILURE, self.context.request_task_reconfiguration)

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return one config. Raises ConnectError if the failure is due."""
        self._failure.check()
        return [self.config]

    def stop(self) -> None:
        """Cancel the timer."""
        self._failure.cancel()


class MockSource(_FailingConnector, SourceConnector):
    """A source without records, with one task."""

    CONFIG = MockConfig
    VERSION = "1"
    task_class = MockSourceTask


class MockSink(_FailingConnector, SinkConnector):
    """A sink that drops its records, with one task."""

    CONFIG = MockConfig
    VERSION = "1"
    task_class = MockSinkTask
