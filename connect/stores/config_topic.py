"""ConfigTopic: the records of a group's config topic; Kafka's KafkaConfigBackingStore."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from connect.stores.config_records import ConfigRecord
from connect.stores.topic_log import InternalTopic
from kafka_client import Client


class ConfigTopic:
    """A config topic. Open it with `await ConfigTopic.open(...)`, and `close` it."""

    offset: int
    """The offset after the last record that was read; -1 before the first (ClusterConfigState.offset)."""

    @classmethod
    async def open(
        cls,
        client: Client,
        topic: InternalTopic,
        on_records: Callable[[list[ConfigRecord]], None],
        *,
        transactional_id: str | None = None,
    ) -> ConfigTopic:
        """Read the topic whole. `on_records` gets all of its records, then those that follow.

        With `transactional_id` (`connect-cluster-<group>`), `claim` comes before the first `write`.
        """
        raise NotImplementedError

    async def claim(self) -> None:
        """Fence the writers of earlier leaders; nothing to do without a transactional id (KIP-618)."""
        raise NotImplementedError

    async def write(self, records: Sequence[ConfigRecord]) -> None:
        """Append records in order, and return once they are durable and have been read back."""
        raise NotImplementedError

    async def read_to_end(self) -> int:
        """Read everything that the topic holds now, and return `offset`."""
        raise NotImplementedError

    async def close(self) -> None:
        """Stop following."""
        raise NotImplementedError
