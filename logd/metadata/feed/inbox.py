"""A broker's end of the feed: which updates count, and what they change here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from logd.errors import ErrorCode, KafkaError
from logd.metadata.feed.update import Update
from logd.metadata.image import Change, ClusterImage, broker_gone
from logd.topic_partition import TopicPartition


class Inbox:
    """`image` is what the broker knows; it is read here, and changed by whoever applies what `take` gives.

    ``controller`` and ``controller_epoch`` are of the controller heard last, -1 before the first.
    """

    def __init__(self, image: ClusterImage) -> None:
        self.controller = -1
        self.controller_epoch = -1
        self.broker_epoch = -1
        self._image = image
        self._applied = 0
        self._snapshot: list[Change] | None = None
        self._is_begun = False

    @property
    def is_complete(self) -> bool:
        """Whether a whole snapshot has come since the registration."""
        return self._is_begun and self._snapshot is None

    def registered(self, broker_epoch: int) -> None:
        """The broker is registered anew: only what is sent to this registration counts, from a snapshot."""
        self.broker_epoch = broker_epoch
        self._is_begun, self._snapshot, self._applied = False, None, 0

    def take(self, update: Update) -> list[Change]:
        """The changes to be applied now, in order; none of an update that was applied before.

        KafkaError: STALE_CONTROLLER_EPOCH, STALE_BROKER_EPOCH; INVALID_UPDATE_VERSION where something is
        missing before it, so that the controller has to begin again.
        """
        if update.controller_epoch < self.controller_epoch:
            raise KafkaError(
                ErrorCode.STALE_CONTROLLER_EPOCH,
                f"controller {update.controller} of epoch {update.controller_epoch} is over: "
                f"controller {self.controller} has epoch {self.controller_epoch}",
            )
        if update.broker_epoch != self.broker_epoch:
            raise KafkaError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"an update for broker epoch {update.broker_epoch}, this broker's is {self.broker_epoch}",
            )
        if update.controller_epoch > self.controller_epoch:
            self.controller_epoch, self.controller = update.controller_epoch, update.controller
            self._is_begun, self._snapshot, self._applied = False, None, 0
        if update.number <= self._applied:
            return []
        if not update.begins and not (self._is_begun and update.number == self._applied + 1):
            raise KafkaError(
                ErrorCode.INVALID_UPDATE_VERSION,
                f"update {update.number} of controller {update.controller} follows {self._applied}: "
                "it has to begin with a snapshot",
            )
        self._applied = update.number
        return self._taken(update)

    def _taken(self, update: Update) -> list[Change]:
        if update.begins:
            self._is_begun, self._snapshot = True, []
        if self._snapshot is None:
            return list(update.changes)
        self._snapshot += update.changes
        if not update.is_complete:
            return []
        snapshot, self._snapshot = self._snapshot, None
        return list(_differences(self._image, snapshot))


def _differences(image: ClusterImage, snapshot: Sequence[Change]) -> Iterator[Change]:
    """What leads from an image to a snapshot: what is gone goes first, what is equal is left out."""
    target = ClusterImage.of(snapshot)
    scratch = ClusterImage.of(image.as_changes())
    for change in (*_gone(image, target), *snapshot):
        if not _has(scratch, change):
            scratch.apply(change)
            yield change


def _gone(image: ClusterImage, target: ClusterImage) -> Iterator[Change]:
    for name, topic in image.topics.items():
        there = target.topics.get(name)
        if there is None or there.topic_id != topic.topic_id:
            yield {"type": "topic-deleted", "name": name}
    for broker in image.brokers.keys() - target.brokers.keys():
        yield broker_gone(broker)
    for name in image.broker_configs.keys() - target.broker_configs.keys():
        yield {"type": "broker-configs", "broker": name, "configs": {}}


def _has(image: ClusterImage, change: Change) -> bool:
    """Whether a change of a snapshot changes nothing."""
    match change["type"]:
        case "topic":
            topic = image.topics.get(change["name"])
            return topic is not None and topic.as_change() == change
        case "partition":
            tp = TopicPartition(change["topic"], change["partition"])
            state = image.partitions.get(tp)
            return state is not None and state.as_change(tp) == change
        case "broker":
            broker = image.brokers.get(change["id"])
            return broker is not None and broker.as_change() == change
        case "broker-configs":
            return change["configs"] == image.broker_configs.get(change["broker"])  # type: ignore[no-any-return]
    return False
