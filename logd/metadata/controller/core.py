"""The controller of the cluster: its image, its epoch, and every decision that it can be asked for.

A method decides and changes nothing. A store writes its decision, which then goes to `apply`. Until then no
other decision may be made, since it would be made on an old image. `logd.metadata.serving` keeps that order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from kafka_client.topic_partition import TopicPartition
from logd.config.topic import TopicConfig
from logd.metadata import decisions
from logd.metadata.controller import (
    alter_partition,
    brokers,
    election,
    producer_ids,
    reassignment,
    shutdown,
    topics,
)
from logd.metadata.controller.alter_partition import Altered, NewIsr
from logd.metadata.controller.decision import Decision
from logd.metadata.controller.election import Elected, ElectionType
from logd.metadata.controller.producer_ids import ProducerIdBlock
from logd.metadata.controller.reassignment import Reassigned
from logd.metadata.controller.topics import NewTopic
from logd.metadata.decisions import Alter
from logd.metadata.image import BrokerImage, ClusterImage, TopicImage

T = TypeVar("T")

_UNCLEAN = "unclean.leader.election.enable"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """The settings of the controller: topic ``defaults``, and ``leader.imbalance.per.broker.percentage``."""

    defaults: TopicConfig = field(default_factory=TopicConfig)
    leader_imbalance_per_broker_percentage: int = 10


class Controller:
    """The controller; ``epoch`` is its epoch, by which stores and brokers fence an older controller."""

    def __init__(
        self, image: ClusterImage, *, epoch: int, settings: ControllerSettings | None = None
    ) -> None:
        self.image = image
        self.epoch = epoch
        self.settings = settings or ControllerSettings()

    def apply(self, decision: Decision[T]) -> T:
        """Apply the changes of a decision that was written. Return the answer, which may be sent now."""
        for change in decision.changes:
            self.image.apply(change)
        return decision.answer

    def unclean_allowed(self, topic: str) -> bool:
        """Return True if ``unclean.leader.election.enable`` holds for a topic."""
        known_topic = self.image.topics.get(topic)
        override = None if known_topic is None else known_topic.configs.get(_UNCLEAN)
        if override is None:
            return self.settings.defaults.unclean_leader_election_enable
        return override.strip().lower() == "true"

    # Brokers

    def take_over(self, restarted: Mapping[int, Collection[TopicPartition]]) -> Decision[None]:
        """Make the first decision, on an image that was loaded from the store. See `brokers.take_over`."""
        return brokers.take_over(self.image, restarted, unclean_allowed=self.unclean_allowed)

    def change_brokers(
        self, *, arrived: Iterable[BrokerImage] = (), departed: Iterable[int] = ()
    ) -> Decision[None]:
        """See `brokers.change_brokers`."""
        return brokers.change_brokers(
            self.image, arrived=arrived, departed=departed, unclean_allowed=self.unclean_allowed
        )

    def see_brokers(self, alive: Collection[BrokerImage]) -> Decision[None]:
        """Decide as `change_brokers`, from the list of all registered brokers.

        A broker of the image that is not in the list has departed.
        """
        missing = self.image.brokers.keys() - {broker.id for broker in alive}
        return self.change_brokers(arrived=alive, departed=sorted(missing))

    def shut_down(self, broker: int, epoch: int) -> Decision[list[TopicPartition]]:
        """See `shutdown.shut_down`."""
        return shutdown.shut_down(self.image, broker, epoch, unclean_allowed=self.unclean_allowed)

    def fail_log_dirs(
        self,
        broker: int,
        epoch: int,
        *,
        log_dirs: Collection[str],
        partitions: Collection[TopicPartition],
    ) -> Decision[None]:
        """See `brokers.fail_log_dirs`."""
        return brokers.fail_log_dirs(
            self.image,
            broker,
            epoch,
            log_dirs=log_dirs,
            partitions=partitions,
            unclean_allowed=self.unclean_allowed,
        )

    def allocate_producer_ids(self, broker: int, epoch: int) -> Decision[ProducerIdBlock]:
        """See `producer_ids.allocate_producer_ids`."""
        return producer_ids.allocate_producer_ids(self.image, broker, epoch)

    # Topics and settings

    def create_topic(self, new: NewTopic) -> Decision[TopicImage]:
        """See `topics.create_topic`. To validate only, leave the decision unwritten."""
        return topics.create_topic(self.image, new, defaults=self.settings.defaults)

    def grow_topic(
        self, name: str, partitions: int, assignments: Sequence[Sequence[int]] | None = None
    ) -> Decision[None]:
        """See `topics.grow_topic`."""
        return topics.grow_topic(self.image, name, partitions, assignments)

    def delete_topic(self, name: str, topic_id: bytes) -> Decision[None]:
        """See `topics.delete_topic`."""
        return topics.delete_topic(self.image, name, topic_id)

    def alter_topic(self, name: str, topic_id: bytes, alter: Alter) -> Decision[None]:
        """Alter a topic as `decisions.alter_topic`, and elect leaders.

        If the new settings allow unclean elections, partitions of the topic without a leader get one.
        """
        changes = decisions.alter_topic(self.image, name, topic_id, alter, defaults=self.settings.defaults)
        configs = changes[0]["configs"]
        unclean = decisions.effective(configs, self.settings.defaults).unclean_leader_election_enable
        elected = election.elect_leaderless(self.image, (name,), unclean_allowed=lambda _: unclean)
        return replace(elected, changes=changes + elected.changes)

    def alter_broker(
        self, broker: str, alter: Alter, check: Callable[[Mapping[str, str]], object]
    ) -> Decision[None]:
        """Alter a broker's settings as `decisions.alter_broker`.

        If the controller's own settings have changed, call `configure` next.
        """
        return Decision(decisions.alter_broker(self.image, broker, alter, check), None)

    def configure(self, settings: ControllerSettings) -> Decision[None]:
        """Use these settings from now on, and elect leaders where they allow unclean elections."""
        self.settings = settings
        leaderless = {tp.topic for tp in self.image.broker_index.leaderless}
        return election.elect_leaderless(self.image, leaderless, unclean_allowed=self.unclean_allowed)

    # Partitions

    def alter_partition(
        self, broker: int, epoch: int, new_isrs: Sequence[NewIsr], *, version: int = 3
    ) -> Decision[Altered]:
        """See `alter_partition.alter_partition`."""
        return alter_partition.alter_partition(
            self.image, broker, epoch, new_isrs, version=version, unclean_allowed=self.unclean_allowed
        )

    def alter_reassignments(
        self, targets: Mapping[TopicPartition, Sequence[int] | None], *, allow_factor_change: bool = True
    ) -> Decision[Reassigned]:
        """See `reassignment.alter_reassignments`; `reassignment.list_reassignments` reads the image."""
        return reassignment.alter_reassignments(
            self.image,
            targets,
            allow_factor_change=allow_factor_change,
            unclean_allowed=self.unclean_allowed,
        )

    def elect_leaders(
        self, kind: ElectionType, partitions: Iterable[TopicPartition] | None
    ) -> Decision[Elected]:
        """See `election.elect_leaders`."""
        return election.elect_leaders(self.image, kind, partitions, unclean_allowed=self.unclean_allowed)

    def rebalance_leaders(self) -> Decision[list[TopicPartition]]:
        """See `election.rebalance_leaders`; called regularly if ``auto.leader.rebalance.enable`` is set."""
        return election.rebalance_leaders(
            self.image,
            self.settings.leader_imbalance_per_broker_percentage,
            unclean_allowed=self.unclean_allowed,
        )
