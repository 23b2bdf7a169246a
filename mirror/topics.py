"""Creates remote topics and keeps their partition counts and configs in sync with the source's.

The configs of many topics are requested at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from kafka_client import Admin, NewTopic, TopicMetadata
from kafka_client.errors import BROKER_AWAY, KafkaError
from mirror.config import LinkSettings
from mirror.errors import with_setting
from mirror.filters import config_changes, copied_configs

log = logging.getLogger(__name__)

Configs = Mapping[str, str]


class RemoteTopics:
    """The remote topics of one flow."""

    def __init__(self, settings: LinkSettings, source: Admin, target: Admin) -> None:
        self._settings = settings
        self._source = source
        self._target = target

    def name_of(self, topic: str) -> str:
        """Return the name in the target of the source's `topic`."""
        return self._settings.remote_topic(topic)

    async def chosen(self) -> list[TopicMetadata]:
        """Return the source's topics that the flow copies, sorted by name."""
        topics = await self._source.list_topics()
        names = self._settings.topics.choose(name for name, topic in topics.items() if not topic.is_internal)
        return [topics[name] for name in names]

    async def align(self, topics: Sequence[TopicMetadata]) -> dict[str, KafkaError]:
        """Create or alter remote topics to have at least as many partitions as `topics`, and the same
        configs.

        Return the errors of the topics that a cluster refused, by source topic; the others are aligned.
        """
        existing = await self._target.list_topics()
        configs, refused = await self._configs([topic.name for topic in topics])
        ours = {topic.name: topic for topic in topics if topic.name not in refused}
        new = {name: topic for name, topic in ours.items() if self.name_of(name) not in existing}
        refused |= await self._create(new, configs)
        old = [name for name in ours if name not in new]
        for name in old:
            remote, count = self.name_of(name), ours[name].partition_count
            if existing[remote].partition_count < count:
                try:
                    await self._target.create_partitions({remote: count})
                except BROKER_AWAY:
                    raise
                except KafkaError as e:
                    refused[name] = e
        return refused | await self._alter([name for name in old if name not in refused], configs)

    async def _configs(self, topics: Sequence[str]) -> tuple[dict[str, Configs], dict[str, KafkaError]]:
        """Return the configs to copy of each source topic, and the errors of topics that could not be
        described.
        """
        if not self._settings.sync_topic_configs:
            return {}, {}
        described = await self._source.describe_topics_configs(topics)
        refused = {name: result for name, result in described.items() if isinstance(result, KafkaError)}
        configs: dict[str, Configs] = {
            name: copied_configs(
                result, self._settings.config_exclude, source_defaults=self._settings.source_defaults
            )
            for name, result in described.items()
            if not isinstance(result, KafkaError)
        }
        return configs, refused

    async def _create(
        self, topics: Mapping[str, TopicMetadata], configs: Mapping[str, Configs]
    ) -> dict[str, KafkaError]:
        new = {
            name: NewTopic(
                self.name_of(name),
                topic.partition_count,
                self._settings.replication_factor,
                configs.get(name, {}),
            )
            for name, topic in topics.items()
        }
        try:
            await self._target.create_topics(new.values(), exist_ok=True)
        except BROKER_AWAY:
            raise
        except KafkaError:
            return await self._create_one_by_one(new)
        return {}

    async def _create_one_by_one(self, new: Mapping[str, NewTopic]) -> dict[str, KafkaError]:
        """Create the topics that do not exist yet, each by itself.

        Return the errors of those that were refused.
        """
        refused: dict[str, KafkaError] = {}
        existing = await self._target.list_topics()
        for name, topic in new.items():
            if topic.name not in existing:
                try:
                    await self._target.create_topics([topic], exist_ok=True)
                except BROKER_AWAY:
                    raise
                except KafkaError as e:
                    refused[name] = with_setting(e, "replication.factor", topic.replication_factor)
        return refused

    async def _alter(self, topics: Sequence[str], configs: Mapping[str, Configs]) -> dict[str, KafkaError]:
        """Set the configs that differ in the target, and reset those that the source topic does not set.

        A change that the target refuses is only logged.
        """
        sources = {self.name_of(name): name for name in topics if name in configs}
        refused: dict[str, KafkaError] = {}
        if not sources:
            return refused
        for remote, current in (await self._target.describe_topics_configs(sources)).items():
            if isinstance(current, KafkaError):
                refused[sources[remote]] = current
                continue
            changes = config_changes(configs[sources[remote]], current, self._settings.config_exclude)
            if changes:
                try:
                    await self._target.incremental_alter_configs(remote, changes)
                except BROKER_AWAY:
                    raise
                except KafkaError as e:
                    log.warning("%s: the configs of %s were not altered: %s", self._settings.name, remote, e)
        return refused
