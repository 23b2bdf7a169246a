"""Remote topics: made like the source's, and kept like them."""

from __future__ import annotations

from collections.abc import Iterable

from logd.client import Admin, NewTopic, TopicMetadata
from mirror.config import LinkSettings
from mirror.filters import copied_configs


class RemoteTopics:
    """Creates the target's topics, raises their partition counts, and carries configs over."""

    def __init__(self, settings: LinkSettings, source: Admin, target: Admin) -> None:
        self._settings = settings
        self._source = source
        self._target = target

    def name_of(self, topic: str) -> str:
        """What a topic of the source is called in the target."""
        return self._settings.policy.remote_topic(self._settings.source.alias, topic)

    async def chosen(self) -> list[TopicMetadata]:
        """The source's topics that are to be copied, by name."""
        topics = await self._source.list_topics()
        names = self._settings.topics.choose(name for name, topic in topics.items() if not topic.is_internal)
        return [topics[name] for name in names]

    async def align(self, topics: Iterable[TopicMetadata]) -> None:
        """Have a remote topic with as many partitions (or more) and the same configs for each of `topics`."""
        existing = await self._target.list_topics()
        for topic in topics:
            remote = self.name_of(topic.name)
            configs = await self._configs(topic.name)
            if remote not in existing:
                new = NewTopic(remote, topic.partition_count, self._settings.replication_factor, configs)
                await self._target.create_topics([new], exist_ok=True)
                continue
            if existing[remote].partition_count < topic.partition_count:
                await self._target.create_partitions({remote: topic.partition_count})
            await self._alter(remote, configs)

    async def _configs(self, topic: str) -> dict[str, str]:
        if not self._settings.sync_topic_configs:
            return {}
        return copied_configs(await self._source.describe_configs(topic), self._settings.config_exclude)

    async def _alter(self, remote: str, configs: dict[str, str]) -> None:
        if not configs:
            return
        current = await self._target.describe_configs(remote)
        changes: dict[str, str | None] = {
            key: value for key, value in configs.items() if key not in current or current[key].value != value
        }
        if changes:
            await self._target.incremental_alter_configs(remote, changes)
