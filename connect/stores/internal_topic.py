"""InternalTopic: an internal topic of a group of workers, and how it comes into being."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from connect.errors import ConfigError, ConnectError
from kafka_client import Admin, Client, NewTopic
from kafka_client.errors import ErrorCode, KafkaError

_log = logging.getLogger(__name__)

_CREATION = "internal.topics.automatic.creation.enable"
_POLICY, _COMPACT = "cleanup.policy", "compact"
_FORBIDDEN = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopic:
    """An internal topic of a group of workers, as the worker's settings describe it."""

    name: str
    setting: str
    """The setting that names the topic, as `config.storage.topic`."""
    purpose: str = "connector data"
    """The topic's contents, for messages: `connector configurations`."""
    partitions: int = 1
    """-1: the broker's default."""
    replication_factor: int = 3
    """-1: the broker's default."""
    configs: Mapping[str, str] = field(default_factory=dict)
    """More settings of a new topic; `cleanup.policy` is compact."""
    create: bool = True
    """False: a missing topic is an error (`internal.topics.automatic.creation.enable`)."""

    async def ensure(self, client: Client) -> int:
        """Create the topic if it is missing, check it if it exists, and return its number of partitions.

        Raises ConfigError if the topic is missing and may not be created, or if its records could be deleted
        by age or size. Raises KafkaError if the brokers refuse to create it.
        """
        admin = Admin(client)
        count = await self._partition_count(client)
        if count is None:
            await self._create(admin)
            count = await self._partition_count(client)
            if count is None:
                raise ConnectError(f"topic {self.name} ({self.setting}) was deleted while it was created")
        await self._check_policy(admin)
        return count

    async def _partition_count(self, client: Client) -> int | None:
        metadata = await client.metadata([self.name], refresh=True, allow_missing=True)
        topic = metadata.topics.get(self.name)
        return None if topic is None else len(topic.partitions)

    async def _create(self, admin: Admin) -> None:
        if not self.create:
            raise ConfigError(
                self.setting,
                self.name,
                f"names a topic that is missing; set {_CREATION} to true, or create the topic by hand",
            )
        new = NewTopic(
            self.name, self.partitions, self.replication_factor, {**self.configs, _POLICY: _COMPACT}
        )
        try:
            # Workers that start together all try: one creates the topic, the others find it.
            await admin.create_topics([new], exist_ok=True)
        except KafkaError as e:
            raise ConnectError(f"topic {self.name} ({self.setting}) cannot be created: {e}") from e
        _log.info("created topic %s for %s", self.name, self.purpose)

    async def _check_policy(self, admin: Admin) -> None:
        try:
            configs = await admin.describe_configs(self.name, keys=[_POLICY])
        except KafkaError as e:
            if e.code not in _FORBIDDEN and e.code != ErrorCode.UNSUPPORTED_VERSION:
                raise
            _log.warning("whether topic %s is compacted cannot be checked: %s", self.name, e)
            return
        policy = configs[_POLICY].value if _POLICY in configs else None
        if policy is None:
            return
        if {each.strip() for each in policy.split(",")} != {_COMPACT}:
            raise ConfigError(
                self.setting,
                self.name,
                f"names a topic with {_POLICY}={policy}, which loses {self.purpose}: "
                f"set the topic's {_POLICY} to {_COMPACT}, or name a topic that has it",
            )
