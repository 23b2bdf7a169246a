"""A running source task of whole record batches: polls, sends, and commits offsets of acknowledged batches.

It differs from other source tasks in what is polled and sent. No record is decoded: there are no converters,
transforms or dead letters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from connect.api.batch_source import BatchSourceTask
from connect.errors import ConfigError
from connect.runtime.batch_offsets import last_offsets
from connect.runtime.batch_sender import BatchSender
from connect.runtime.raw_batches import PolledBatches, prepared
from connect.runtime.source_rows import Polled
from connect.runtime.source_sender import SourceSender
from connect.runtime.source_task import WorkerSourceTask

_OF_RECORDS = (
    "transforms",
    "predicates",
    "key.converter",
    "value.converter",
    "header.converter",
    "errors.deadletterqueue.topic.name",
)


class WorkerBatchSourceTask(WorkerSourceTask):
    """A worker's task that runs a `BatchSourceTask`."""

    _SENDER: ClassVar[type[SourceSender]] = BatchSender

    def _prepare_rows(self) -> bool:
        return False

    def _prepared(self, polled: Sequence[Any] | None) -> Polled:
        return prepared(polled)

    async def _hand_over(self, polled: Polled) -> None:
        assert isinstance(polled, PolledBatches) and isinstance(self._sender, BatchSender)
        offsets, uncovered = last_offsets(polled.batches, self._offsets)
        await self._sender.send_batches(polled, self._submitted.submit(offsets, uncovered=uncovered))

    async def _commit_next_records(self) -> None:
        """Call the plugin's `commit_batch` for the next acknowledged batch."""
        assert isinstance(self._sender, BatchSender) and isinstance(self._task, BatchSourceTask)
        await self._calls.call(self._task.commit_batch, *self._sender.acknowledged_batches.popleft())


def is_batch_source(plugin: type[Any]) -> bool:
    """Return True if the tasks of a connector class return whole record batches."""
    return issubclass(getattr(plugin, "task_class", object), BatchSourceTask)


def _passes_bytes(key: str, value: str) -> bool:
    """Return True for a converter that changes no bytes, which MirrorMaker's configs set."""
    return key.endswith(".converter") and value.rpartition(".")[2] == "ByteArrayConverter"


def refused_for_batches(raw: Mapping[str, Any]) -> list[ConfigError]:
    """Return an error for each setting of single records: a source of whole batches decodes none."""
    keys = [key for key in _OF_RECORDS if raw.get(key) and not _passes_bytes(key, str(raw[key]))]
    if str(raw.get("errors.tolerance", "none")).lower() == "all":
        keys.append("errors.tolerance")
    text = "does not apply to this connector, whose batches are written without decoding; remove it"
    return [ConfigError(key, raw[key], text) for key in keys]
