"""The sink connector: a coordinator that plans offset ranges, has Spark write them, verifies and commits.

    1  position   from the table's newest commit, never from memory; a partition seen for the first time
                  gets one before anything is read, so that records deleted by retention afterwards are
                  noticed
    2  plan       [position, last stable offset) per partition
    3  write      Spark's executors read the log and write files into a folder of this attempt
    4  verify     rows and offsets in the files against the plan
    5  commit     one commit adds the files and the next offsets
    6  return     the positions, so that the group's offsets follow, for lag tools only

A crash after any step leaves either the old table or the new one. The next start claims the table and removes
folders that no commit names (see `table`, and `delta_table` for Delta).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence

from connect.api import (
    ConfigError,
    ConnectError,
    OffsetRange,
    RangeSinkTask,
    SinkConnector,
    TopicPartition,
)
from plugins.spark.backfilling import BATCH, after_ranges, plan_backfill, with_backfills
from plugins.spark.calls import PlannedRange, WriteRequest, WriteResult
from plugins.spark.columns import record_prefix
from plugins.spark.driver import SparkDriver, acquire_driver, release_driver
from plugins.spark.environment import java_found
from plugins.spark.errors import Fenced, VerificationFailed
from plugins.spark.formats import open_target
from plugins.spark.manifest import Manifest, TopicPosition
from plugins.spark.option_names import EFFECTIVE, misspelt
from plugins.spark.planning import BatchPlan, plan_batch
from plugins.spark.settings import SparkSettings, SparkSinkConfig, local_path, parse_topic_ids
from plugins.spark.table import table_columns

log = logging.getLogger(__name__)


class SparkSinkTask(RangeSinkTask):
    """The coordinator of one table. Its methods are plain: the worker runs them in a thread."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._driver: SparkDriver | None = None
        self._waiting_since: float | None = None

    def start(self, config: Mapping[str, str]) -> None:
        """Claim the table, remove orphans, and start Spark in the background."""
        self.config = SparkSinkConfig.parse(config)
        if not java_found():
            raise ConnectError("Spark needs Java 17 or newer: neither JAVA_HOME nor the path has one")
        self.table = open_target(
            local_path(self.config.path), self.config.table_format, self.context.connector
        )
        self._check_columns()
        self._driver = acquire_driver(SparkSettings.from_config(config))
        for key, nearest in misspelt(f"kafka.{key}" for key in self.context.client_settings).items():
            log.warning("%s is not known and has no effect%s", key, f"; {nearest}?" if nearest else "")
        names = [column.name for column in self.config.row_shape().partition_by]
        self.table.create(self._first_columns, names)
        claim = self.table.claim()
        self._writer = claim.writer
        orphans = self.table.collect_orphans(claim)
        if orphans:
            log.info("%s: removed %d orphans of an interrupted batch", self.table.path, orphans)

    def run_once(self, ends: Mapping[TopicPartition, OffsetRange]) -> Mapping[TopicPartition, int]:
        """Add one batch to the table if enough records are pending, or have been for long enough."""
        state = self._state()
        plan = plan_batch(
            state,
            ends,
            max_records=self.config.max_offsets_per_trigger,
            fail_on_data_loss=self.config.fail_on_data_loss,
            is_read=self._is_read,
            from_latest=self.config.starting_offsets == "latest",
            accepted_ids=parse_topic_ids(self.config.accept_topic_ids),
        )
        if plan.starts:
            state = self._commit_starts(plan)
        if self._due(plan.pending):
            state = self._write_batch(state, plan)
        self._write_backfill(state, plan.topic_ids)
        return {tp: offset for tp in ends if (offset := state.position(*tp)) is not None}

    def stop(self) -> None:
        """Release the driver; the worker's last task ends it."""
        if self._driver is not None:
            release_driver(self._driver)
            self._driver = None

    def _first_columns(self) -> str:
        """Return the columns of a table that is to be created, as Spark knows them without any record."""
        assert self._driver is not None
        return self._driver.table_columns(self.config.row_shape())

    def _check_columns(self) -> None:
        """Raise ConfigError if columns that name folders, or the record's, are not called as in the table."""
        existing = self.table.partition_columns()
        configured = [column.name for column in self.config.row_shape().partition_by]
        if existing is not None and existing != configured:
            raise ConfigError(
                "partition.by",
                self.config.partition_by,
                f"the folders of {self.table.path} are named by {', '.join(existing) or 'nothing'}: "
                "leave that as it is, or take a new path",
            )
        state = self.table.latest()
        prefix = None if state is None else record_prefix(table_columns(state))
        if prefix is not None and prefix != self.config.record_columns_prefix:
            raise ConfigError(
                "record.columns.prefix",
                self.config.record_columns_prefix,
                f"the columns of {self.table.path} begin with {prefix!r}: leave that as it is, or take a new "
                "path",
            )

    def _state(self) -> Manifest:
        state = self.table.latest()
        if state is None or state.writer != self._writer:
            raise Fenced(f"{self.table.path}: another writer has claimed the table")
        return state

    def _due(self, pending: int) -> bool:
        if not pending:
            self._waiting_since = None
            return False
        if self._waiting_since is None:
            self._waiting_since = self._clock()
        waited_ms = (self._clock() - self._waiting_since) * 1000
        return pending >= self.config.min_offsets_per_trigger or waited_ms >= self.config.max_trigger_delay_ms

    def _is_read(self, topic: str) -> bool:
        pattern = self.config.topics_pattern
        return topic in self.config.topics if pattern is None else bool(pattern.fullmatch(topic))

    def _commit_starts(self, plan: BatchPlan) -> Manifest:
        """Commit the first positions of new partitions, without files."""
        return self.table.update(
            self._writer,
            lambda state: state.next(
                self._now_ms(), positions=state.positions_after(plan.starts, plan.topic_ids, plan.starts)
            ),
        )

    def _write_batch(self, state: Manifest, plan: BatchPlan) -> Manifest:
        """Add the planned ranges to the table."""
        committed = self._write(
            state,
            plan.ranges,
            plan.topic_ids,
            lambda newest: newest.positions_after(plan.positions, plan.topic_ids),
        )
        self._waiting_since = None
        return committed

    def _write_backfill(self, state: Manifest, topic_ids: Mapping[str, str]) -> None:
        """Add the next batch of a backfill that `millstream spark backfill` has requested, if any."""
        most = min(BATCH, self.config.max_offsets_per_trigger or BATCH)
        ranges = plan_backfill(state, topic_ids, most)
        if ranges:
            self._write(
                state,
                tuple(ranges),
                topic_ids,
                lambda newest: with_backfills(newest, after_ranges(newest, ranges)),
            )

    def _write(
        self,
        state: Manifest,
        ranges: tuple[PlannedRange, ...],
        topic_ids: Mapping[str, str],
        positions: Callable[[Manifest], dict[str, TopicPosition]],
    ) -> Manifest:
        """Have Spark write the ranges, check the files, and commit them with the new positions."""
        assert self._driver is not None
        directory = self.table.batch_directory(state.number + 1)
        began = self._clock()
        result = self._driver.write(
            WriteRequest(
                bootstrap_servers=self.context.bootstrap_servers,
                ranges=ranges,
                directory=str(directory),
                file_root=str(self.table.path),
                shape=self.config.row_shape(),
                value_schema=state.value_schema,
                table_schema=state.table_schema,
                topic_ids=dict(topic_ids),
                inferred_topics=state.inferred_topics,
                generations={t: p.generation for t, p in state.positions.items() if p.generation},
                evolve=self.config.schema_evolution == "backward",
                fail_on_data_loss=self.config.fail_on_data_loss,
                fail_on_unreadable_batch=self.config.errors_tolerance == "none",
                client_options=self._client_options(),
            )
        )
        verify(result, ranges)
        committed = self.table.update(
            self._writer, lambda newest: self._next(newest, result, positions(newest))
        )
        for note in result.notes:
            log.warning("%s: batch %d: %s", self.table.path, committed.number, note)
        log.info(
            "%s: batch %d, %d rows in %d files, %.1f s",
            self.table.path,
            committed.number,
            result.rows_read,
            len(result.files),
            self._clock() - began,
        )
        return committed

    def _next(self, state: Manifest, result: WriteResult, positions: dict[str, TopicPosition]) -> Manifest:
        return state.next(
            self._now_ms(),
            rows=state.rows + sum(file.rows for file in result.files),
            files=result.files,
            positions=positions,
            value_schema=result.value_schema,
            table_schema=result.table_schema,
            inferred_topics=result.inferred_topics,
            partition_columns=tuple(column.name for column in self.config.row_shape().partition_by),
        )

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)

    def _client_options(self) -> dict[str, str]:
        """Return the source's options: the context's consumer keys with an effect on it, committed records
        only.

        The other keys are for sinks that receive records; `start` warns of unknown ones.
        """
        options = {f"kafka.{key}": str(value) for key, value in self.context.client_settings.items()}
        effective = {key: value for key, value in options.items() if key.lower() in EFFECTIVE}
        return effective | {"kafka.isolation.level": "read_committed"}


class SparkSink(SinkConnector):
    """The connector `connector.class=spark`, which writes topics to a table with Spark."""

    CONFIG = SparkSinkConfig
    VERSION = "1"
    task_class = SparkSinkTask


def verify(result: WriteResult, planned: Sequence[PlannedRange]) -> None:
    """Raise VerificationFailed unless the files have all rows that Spark read, and none outside the plan.

    Compacted and transactional topics have gaps, so fewer rows than offsets are valid. More rows than offsets
    are an error, and so is a row that Spark counted but the files do not have.
    """
    plans = {TopicPartition(r.topic, r.partition): r for r in planned}
    in_files = sum(file.rows for file in result.files)
    if not in_files == sum(r.rows for r in result.ranges) == result.rows_read:
        raise VerificationFailed(f"Spark read {result.rows_read} rows, the files hold {in_files}")
    for written in result.ranges:
        plan = plans.get(TopicPartition(written.topic, written.partition))
        if plan is None or not plan.start <= written.first_offset <= written.last_offset < plan.end:
            raise VerificationFailed(f"offsets outside of the plan: {written}, planned {plan}")
        if written.rows > written.last_offset - written.first_offset + 1:
            raise VerificationFailed(f"rows written twice: {written}")
