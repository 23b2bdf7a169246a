"""SourceConformance: the tests that every source connector passes; a plugin's test class inherits them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from connect.api.records import SourceRecord
from connect.api.source import SourceConnector
from connect.errors import ConfigError
from connect.testing.runs import SourceRun
from connect.testing.threads import assert_no_threads_since

_STOP_SECONDS = 30.0
"""How long a blocking poll may take to return after `stop`, before it counts as hung."""
_TASKS = 3


class SourceConformance:
    """The conformance suite of sources. Subclass it, set `connector`, and write `config` and `add`.

        class TestQueueSource(SourceConformance):
            connector = QueueSource

            def config(self, folder: Path) -> dict[str, str]:
                return {"directory": str(folder), "topic": "jobs"}

            def add(self, folder: Path, numbers: range) -> None:
                for number in numbers:
                    (folder / f"{number:06}.json").write_text(json.dumps({"number": number}))

    Each test gets an empty `folder`; put a connection's parameters there if the source is no file.
    """

    connector: ClassVar[type[SourceConnector]]
    poll_max: ClassVar[int | None] = None
    """The most records that one `poll` may return; None skips the test of that bound."""
    run_class: ClassVar[type[SourceRun]] = SourceRun
    """How the suite runs the source: a subclass may poll again while records are still to come."""
    blocks: ClassVar[bool] = True
    """True if `poll` waits while there is nothing to read; the suite stops a waiting poll then."""

    def config(self, folder: Path) -> dict[str, str]:
        """Return settings that read what `add` adds; `name`, `tasks.max` and the like are not needed."""
        raise NotImplementedError

    def add(self, folder: Path, numbers: range) -> None:
        """Add a record for each number to the source, each recognised by `number`, and commit them there."""
        raise NotImplementedError

    def number(self, record: SourceRecord) -> int:
        """Return the number that the record was added with; by default the field `number` of its value."""
        return int(record.value["number"])

    def invalid_configs(self, folder: Path) -> Iterator[Mapping[str, str]]:
        """Yield settings that are refused: by default `config` without each of its required settings."""
        config = self.config(folder)
        for key, declared in self.connector.CONFIG.settings().items():
            if declared.required:
                yield {k: v for k, v in config.items() if k != key}

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """Return the test's empty folder."""
        return tmp_path

    def test_every_record_is_read_once(self, folder: Path) -> None:
        """Reading from the start gives each record once, whatever the number of tasks."""
        self.add(folder, range(20))
        for tasks in (1, _TASKS):
            run = self.run_class(self.connector, self.config(folder), name=f"of{tasks}", max_tasks=tasks)
            assert len(run.task_configs) <= tasks, f"{len(run.task_configs)} tasks, tasks.max is {tasks}"
            numbers = self._numbers(run)
            run.stop()
            assert sorted(numbers) == list(range(20)), f"read {sorted(numbers)}, wanted 0 to 19 once"

    def test_a_restart_resumes_behind_the_committed_offsets(self, folder: Path) -> None:
        """After a commit and a restart nothing is read twice, and what came meanwhile is read."""
        self.add(folder, range(10))
        run = self.run_class(self.connector, self.config(folder))
        first = self._numbers(run)
        run.commit()
        self.add(folder, range(10, 15))
        again = run.again()
        second = self._numbers(again)
        again.stop()
        assert sorted(first) == list(range(10)), f"read {sorted(first)} before the restart, wanted 0 to 9"
        assert sorted(second) == list(range(10, 15)), (
            f"read {sorted(second)} after the restart, wanted 10 to 14"
        )

    def test_a_crash_loses_nothing(self, folder: Path) -> None:
        """Records whose offsets were not committed are read again after a restart."""
        self.add(folder, range(10))
        run = self.run_class(self.connector, self.config(folder))
        assert self._numbers(run), "nothing was read"
        again = run.again()
        numbers = self._numbers(again)
        again.stop()
        assert sorted(numbers) == list(range(10)), f"read {sorted(numbers)} after the crash, wanted 0 to 9"

    def test_exactly_once_where_claimed(self, folder: Path) -> None:
        """A source that claims exactly-once support gives each record once, whichever polls a crash undoes.

        As in a worker with `transaction.boundary=poll`, a poll's records and offsets count together or not at
        all. Each poll is undone once, by a crash, before it counts.
        """
        if not self.connector().exactly_once_support(self.config(folder)):
            return
        self.add(folder, range(25))
        run = self.run_class(self.connector, self.config(folder))
        numbers: list[int] = []
        while run.poll():
            run = run.again()
            numbers += [self.number(record) for record in run.poll()]
            run.commit()
        run.stop()
        assert numbers == list(range(25)), f"read {numbers} in transactions, wanted 0 to 24 once, in order"

    def test_each_offset_is_a_place_to_resume_from(self, folder: Path) -> None:
        """From the offset of each record, all later records are read, and none before it twice."""
        self.add(folder, range(6))
        run = self.run_class(self.connector, self.config(folder))
        records = self._read(run)
        run.stop()
        places = [i for i, record in enumerate(records) if record.source_offset is not None]
        assert places, "no record has a source offset: a restart would read all again"
        for place in places:
            at = records[place]
            later = {
                self.number(r) for r in records[place + 1 :] if r.source_partition == at.source_partition
            }
            resumed = self.run_class(self.connector, self.config(folder), store=run.store_at(at))
            numbers = self._numbers(resumed)
            resumed.stop()
            assert self.number(at) not in numbers, f"{at.source_offset} reads its own record again"
            assert later <= set(numbers), f"{at.source_offset} loses {sorted(later - set(numbers))}"

    def test_offsets_are_json(self, folder: Path) -> None:
        """Source partitions and offsets are dicts of JSON values, as the worker stores them."""
        self.add(folder, range(3))
        run = self.run_class(self.connector, self.config(folder))
        for record in self._read(run):
            for document in (record.source_partition, record.source_offset):
                if document is not None:
                    assert json.loads(json.dumps(dict(document))) == dict(document), (
                        f"{document!r} is no JSON"
                    )
        run.stop()

    def test_values_fit_their_schemas(self, folder: Path) -> None:
        """Each key and value fits the schema beside it."""
        self.add(folder, range(3))
        run = self.run_class(self.connector, self.config(folder))
        for record in self._read(run):
            for schema, value in ((record.key_schema, record.key), (record.value_schema, record.value)):
                if schema is not None:
                    schema.check(value)
        run.stop()

    def test_a_poll_is_bounded(self, folder: Path) -> None:
        """No poll returns more than `poll_max` records, so that a worker's memory is bounded."""
        if self.poll_max is None:
            pytest.skip("poll_max is not set: say how many records a poll may return")
        self.add(folder, range(2 * self.poll_max + 1))
        run = self.run_class(self.connector, self.config(folder))
        longest = 0
        while records := run.poll():
            longest = max(longest, len(records))
        run.stop()
        assert 0 < longest <= self.poll_max, f"a poll returned {longest} records, poll_max is {self.poll_max}"

    def test_an_invalid_config_is_refused(self, folder: Path) -> None:
        """A config that cannot work raises ConfigError before a task starts."""
        for config in self.invalid_configs(folder):
            with pytest.raises(ConfigError):
                self.run_class(self.connector, config).stop()

    def test_stop_ends_a_poll(self, folder: Path) -> None:
        """`stop` from another thread makes a blocking poll return."""
        run = self.run_class(self.connector, self.config(folder))
        self._numbers(run)
        if not self.blocks or run.tasks[0].context.is_finished:
            run.stop()
            return
        assert run.interrupt(_STOP_SECONDS), f"poll has not returned {_STOP_SECONDS:g} s after stop"

    def test_nothing_stays_after_stop(self, folder: Path) -> None:
        """A stopped connector leaves no thread behind, and may be stopped before its first poll."""
        self.add(folder, range(3))
        before = set(threading.enumerate())
        self.run_class(self.connector, self.config(folder)).stop()
        run = self.run_class(self.connector, self.config(folder))
        self._numbers(run)
        run.stop()
        assert_no_threads_since(before)

    def _read(self, run: SourceRun) -> list[SourceRecord]:
        return run.records()

    def _numbers(self, run: SourceRun) -> list[int]:
        return [self.number(record) for record in self._read(run)]
