"""A running task of a sink of columns: what is fetched becomes Arrow arrays instead of records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from connect.api.columnar_sink import ColumnarSinkTask
from connect.errors import ConfigError
from connect.runtime.sink_rows import SinkBatch
from connect.runtime.sink_task import WorkerSinkTask
from connect.runtime.task import TaskSetting
from kafka_client import Fetched, TopicPartition
from kafka_client.fetcher.parts import OnUnreadable, Part


class WorkerColumnarSinkTask(WorkerSinkTask):
    """A worker's task that runs a `ColumnarSinkTask`."""

    def __init__(
        self, setting: TaskSetting, task: ColumnarSinkTask, *, on_change: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(setting, task, on_change=on_change)
        self._columnar = task

    async def _start(self) -> None:
        await super()._start()
        if self._columnar.takes_columns:
            try:
                import pyarrow  # noqa: F401
            except ImportError as e:
                plugin = self.setting.connector_config.get("connector.class", "")
                raise ConfigError(
                    "connector.class", plugin, "needs pyarrow: pip install 'millstream[arrow]'"
                ) from e

    def _parts(self, fetched: Fetched, on_unreadable: OnUnreadable | None) -> Iterator[Part]:
        if not self._columnar.takes_columns:
            return super()._parts(fetched, on_unreadable)
        from connect.runtime.columnar.parts import columnar_parts

        # A columnar part has what a Part has; its records are made only after a failure.
        most = self.rate.bound(self._part_records, self._part_bytes)
        return columnar_parts(fetched, *most, on_unreadable)  # type: ignore[return-value]

    def _sizes(self, part: Part) -> Iterable[int]:
        if not self._columnar.takes_columns:
            return super()._sizes(part)
        return (column.nbytes for column in (part.keys, part.values))  # type: ignore[attr-defined]

    def _new_batch(self, tp: TopicPartition, part: Part) -> SinkBatch:
        if not self._columnar.takes_columns:
            return super()._new_batch(tp, part)
        from connect.runtime.columnar.batch import ColumnarBatch

        self._put_records = self._columnar.put_columns
        return ColumnarBatch(self._rows, tp, part)  # type: ignore[arg-type]
