"""SinkConformance: the tests that every sink connector passes; a plugin's test class inherits them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from connect.api import schema
from connect.api.records import SinkRecord
from connect.api.schema import Schema
from connect.api.sink import SinkConnector
from connect.errors import ConfigError
from connect.testing.runs import SinkRun
from connect.testing.threads import assert_no_threads_since

_TOPIC = "numbers"
_VALUE = schema.struct({"number": schema.int64(), "text": schema.string()})
_LATER_VALUE = schema.struct(
    {"number": schema.int64(), "text": schema.string(), "note": schema.string(optional=True)}
)


class SinkConformance:
    """The conformance suite of sinks. Subclass it, set `connector`, and write `config` and `read`.

        class TestTableSink(SinkConformance):
            connector = TableSink
            exactly_once = True

            def config(self, folder: Path) -> dict[str, str]:
                return {"database": str(folder / "db"), "topics": "numbers"}

            def read(self, folder: Path) -> list[int]:
                return [row["number"] for row in rows(folder / "db")]

    Records have a struct with the fields `number` and `text`. Each test gets an empty `folder`; put a
    connection's parameters there if the target is no file.
    """

    connector: ClassVar[type[SinkConnector]]
    exactly_once: ClassVar[bool] = False
    """True if the sink claims that redelivered records are in the target once."""
    evolves: ClassVar[bool] = True
    """True if the sink takes records with a field more than those before."""
    value_schema: ClassVar[Schema | None] = _VALUE

    def config(self, folder: Path) -> dict[str, str]:
        """Return settings of the sink; `name`, `tasks.max` and `topics` are not needed."""
        raise NotImplementedError

    def read(self, folder: Path) -> Iterable[int]:
        """Return the numbers of the records that are in the target, in any order."""
        raise NotImplementedError

    def invalid_configs(self, folder: Path) -> Iterator[Mapping[str, str]]:
        """Yield settings that are refused: by default `config` without each of its required settings."""
        config = self.config(folder)
        for key, declared in self.connector.CONFIG.settings().items():
            if declared.required:
                yield {k: v for k, v in config.items() if k != key}

    def record(self, number: int, partition: int = 0, offset: int | None = None) -> SinkRecord:
        """Return the record with a number; its offset is the number unless another is given."""
        value: dict[str, Any] = {"number": number, "text": f"text {number}"}
        at = number if offset is None else offset
        return SinkRecord(
            _TOPIC,
            partition,
            at,
            value,
            key=str(number),
            key_schema=schema.string() if self.value_schema else None,
            timestamp=1_700_000_000_000 + number,
            value_schema=self.value_schema,
        )

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """Return the test's empty folder."""
        return tmp_path

    def test_flushed_records_are_in_the_target(self, folder: Path) -> None:
        """After a flush the target has every record once, and the offsets behind them may be committed."""
        with SinkRun(self.connector, self.config(folder)) as run:
            run.put(self._records(range(10)))
            run.put(self._records(range(10, 15)))
            offsets = run.flush()
            assert offsets == {(_TOPIC, 0): 15}, f"after 15 records flush allows {offsets}"
            self._assert_target(folder, range(15))

    def test_a_crash_before_the_flush_loses_nothing(self, folder: Path) -> None:
        """Records behind the last flush come again, and are in the target then."""
        run = SinkRun(self.connector, self.config(folder))
        run.put(self._records(range(5)))
        run.flush()
        run.put(self._records(range(5, 10)))
        run.crash()
        with SinkRun(self.connector, self.config(folder)) as again:
            again.put(self._records(range(5, 12)))
            again.flush()
            self._assert_target(folder, range(12))

    def test_a_crash_after_the_flush_loses_nothing(self, folder: Path) -> None:
        """Flushed records come again if the worker dies before it commits their offsets."""
        run = SinkRun(self.connector, self.config(folder))
        run.put(self._records(range(5)))
        run.flush()
        run.crash()
        with SinkRun(self.connector, self.config(folder)) as again:
            again.put(self._records(range(8)))
            again.flush()
            self._assert_target(folder, range(8))

    def test_a_partition_moves_to_another_task(self, folder: Path) -> None:
        """A task that opens a partition after another has closed it goes on behind it."""
        first, second = (SinkRun(self.connector, self.config(folder)) for _ in range(2))
        first.put([*self._records(range(5)), self.record(100, partition=1, offset=0)])
        first.flush()
        first.close(0)
        second.put(self._records(range(5, 10)))
        first.put([self.record(101, partition=1, offset=1)])
        first.flush()
        second.flush()
        first.stop()
        second.stop()
        self._assert_target(folder, [*range(10), 100, 101])

    def test_gaps_between_offsets_are_no_gaps_in_the_target(self, folder: Path) -> None:
        """Compaction and transactions leave gaps between offsets."""
        with SinkRun(self.connector, self.config(folder)) as run:
            run.put([self.record(n) for n in (0, 3, 4, 9)])
            run.flush()
            run.put([self.record(n) for n in (20, 21)])
            run.flush()
            self._assert_target(folder, [0, 3, 4, 9, 20, 21])

    def test_a_flush_without_records(self, folder: Path) -> None:
        """A flush may come before the first record, and twice in a row."""
        with SinkRun(self.connector, self.config(folder)) as run:
            assert run.flush() == {}
            run.put(self._records(range(3)))
            run.flush()
            assert run.flush() == {(_TOPIC, 0): 3}
            self._assert_target(folder, range(3))

    def test_the_schema_gets_another_field(self, folder: Path) -> None:
        """Records with a field more than those before are written, too."""
        if not self.evolves or self.value_schema is None:
            pytest.skip("this sink takes one schema only" if self.value_schema else "records without schema")
        with SinkRun(self.connector, self.config(folder)) as run:
            run.put(self._records(range(3)))
            later = self.record(3)
            later.value, later.value_schema = {**later.value, "note": "new"}, _LATER_VALUE
            run.put([later, self.record(4)])
            run.flush()
            self._assert_target(folder, range(5))

    def test_an_invalid_config_is_refused(self, folder: Path) -> None:
        """A config that cannot work raises ConfigError before a task starts."""
        for config in self.invalid_configs(folder):
            with pytest.raises(ConfigError):
                SinkRun(self.connector, config).stop()

    def test_nothing_stays_after_stop(self, folder: Path) -> None:
        """A stopped connector leaves no thread behind, and may be stopped before its first record."""
        before = set(threading.enumerate())
        SinkRun(self.connector, self.config(folder)).stop()
        with SinkRun(self.connector, self.config(folder)) as run:
            run.put(self._records(range(3)))
            run.flush()
        assert_no_threads_since(before)

    def _records(self, numbers: range) -> list[SinkRecord]:
        return [self.record(number) for number in numbers]

    def _assert_target(self, folder: Path, numbers: Sequence[int]) -> None:
        """Raise AssertionError unless the target has these numbers: once each if the sink claims that."""
        stored = sorted(self.read(folder))
        missing = sorted(set(numbers) - set(stored))
        assert not missing, f"lost: {missing}"
        strange = sorted(set(stored) - set(numbers))
        assert not strange, f"nobody wrote: {strange}"
        if self.exactly_once:
            assert stored == sorted(numbers), (
                f"twice: {sorted(n for n in set(stored) if stored.count(n) > 1)}"
            )
