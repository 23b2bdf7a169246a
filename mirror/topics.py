"""Remote topics: made like the source's, and kept like them. Configs are asked of many topics at a time."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from kafka_client import Admin, NewTopic, TopicMetadata
from kafka_client.errors import BROKER_AWAY, KafkaError
from mirror.config import LinkSettings
from mirror.errors import of_setting
from mirror.filters import copied_configs

log = logging.getLogger(__name__)

Configs = Mapping[str, str]


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

    async def align(self, topics: Sequence[TopicMetadata]) -> dict[str, KafkaError]:
        """Have a remote topic with as many partitions (or more) and the same configs for each of `topics`.

        Returns, by the source's name, what one cluster refused of a topic; the others are aligned.
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
        """Of each topic of the source what its remote topic gets too, or why that is not known."""
        if not self._settings.sync_topic_configs:
            return {}, {}
        described = await self._source.describe_topics_configs(topics)
        refused = {name: found for name, found in described.items() if isinstance(found, KafkaError)}
        configs: dict[str, Configs] = {
            name: copied_configs(found, self._settings.config_exclude)
            for name, found in described.items()
            if not isinstance(found, KafkaError)
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
        """Of the topics that do not exist yet, which one was refused, and why."""
        refused: dict[str, KafkaError] = {}
        existing = await self._target.list_topics()
        for name, topic in new.items():
            if topic.name not in existing:
                try:
                    await self._target.create_topics([topic], exist_ok=True)
                except BROKER_AWAY:
                    raise
                except KafkaError as e:
                    refused[name] = of_setting(e, "replication.factor", topic.replication_factor)
        return refused

    async def _alter(self, topics: Sequence[str], configs: Mapping[str, Configs]) -> dict[str, KafkaError]:
        """Set what differs; a config that the target refuses does not stop the copy."""
        wanted = {self.name_of(name): name for name in topics if configs.get(name)}
        refused: dict[str, KafkaError] = {}
        if not wanted:
            return refused
        for remote, current in (await self._target.describe_topics_configs(wanted)).items():
            if isinstance(current, KafkaError):
                refused[wanted[remote]] = current
                continue
            changes: dict[str, str | None] = {
                key: value
                for key, value in configs[wanted[remote]].items()
                if key not in current or current[key].value != value
            }
            if changes:
                try:
                    await self._target.incremental_alter_configs(remote, changes)
                except BROKER_AWAY:
                    raise
                except KafkaError as e:
                    log.warning("%s: %s keeps its configs: %s", self._settings.name, remote, e)
        return refused
