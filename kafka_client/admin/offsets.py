"""Admin calls about offsets: listing them, and deleting the records before them."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_client.admin.base import AdminBase
from kafka_client.errors import error_for
from kafka_client.fetcher.offsets import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    IsolationLevel,
    ListedOffset,
    all_or_first_error,
    by_leader,
    by_topic,
    list_offsets,
)
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)

OffsetSpec = str | int
""" "earliest", "latest", "max_timestamp", or a timestamp in ms."""

_SPECS: Mapping[str, int] = {"earliest": EARLIEST, "latest": LATEST, "max_timestamp": MAX_TIMESTAMP}


class OffsetAdmin(AdminBase):
    """Offsets of topics; see `admin.Admin`."""

    async def list_offsets(
        self,
        specs: Mapping[TopicPartition, OffsetSpec],
        *,
        isolation_level: IsolationLevel = "read_uncommitted",
    ) -> dict[TopicPartition, ListedOffset]:
        """Return each partition's offset by its spec: "earliest", "latest", "max_timestamp", or a time.

        A time in ms asks for the first record at or after it; `offset` is -1 if there is none. With
        read_committed "latest" is the last stable offset.
        """
        timestamps = {tp: spec if isinstance(spec, int) else _SPECS[spec] for tp, spec in specs.items()}
        return await list_offsets(
            self._client, timestamps, isolation_level=isolation_level, timeout_ms=self._timeout_ms
        )

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Delete records before the offsets (-1: all); return each partition's low watermark."""
        low: dict[TopicPartition, int] = {}

        async def ask(node: int, tps: list[TopicPartition]) -> None:
            topics = [
                DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsPartition(partition_index=p, offset=before[TopicPartition(topic, p)])
                        for p in partitions
                    ],
                )
                for topic, partitions in by_topic(tps).items()
            ]
            response: DeleteRecordsResponse = await self._client.request(
                DeleteRecordsRequest(topics=topics, timeout_ms=self._timeout_ms), node=node
            )
            results = [
                (TopicPartition(t.name, p.partition_index), p) for t in response.topics for p in t.partitions
            ]
            low.update({tp: p.low_watermark for tp, p in results if not p.error_code})
            for tp, partition in results:
                if partition.error_code:
                    raise error_for(partition.error_code, f"deleting records of {tp}")

        async def attempt() -> None:
            nodes = await by_leader(self._client, [tp for tp in before if tp not in low])
            await all_or_first_error(ask(node, tps) for node, tps in nodes.items())

        await self._client.retrying(attempt, timeout_ms=self._timeout_ms)
        return low
