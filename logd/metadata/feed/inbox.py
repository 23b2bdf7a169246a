"""A broker's end of the feed: it accepts or refuses updates, and returns the changes to apply."""

from __future__ import annotations

from kafka_client.errors import ErrorCode, KafkaError
from logd.metadata.differences import differences
from logd.metadata.feed.update import Update
from logd.metadata.image import Change, ClusterImage


class Inbox:
    """The updates that a broker receives.

    `image` is the broker's image, which the inbox only reads: the broker applies the changes that `take`
    returns. ``controller`` and ``controller_epoch`` come from the last accepted update, and are -1 before.
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
        """True if a whole snapshot has arrived since the registration."""
        return self._is_begun and self._snapshot is None

    def registered(self, broker_epoch: int) -> None:
        """Note a new registration: accept only updates sent to it, beginning with a snapshot."""
        self.broker_epoch = broker_epoch
        self._is_begun, self._snapshot, self._applied = False, None, 0

    def take(self, update: Update[Change]) -> list[Change]:
        """Return the changes to apply now, in order; none if the update was applied before.

        Raises KafkaError: STALE_CONTROLLER_EPOCH, STALE_BROKER_EPOCH, or INVALID_UPDATE_VERSION. The last one
        means that an earlier update is missing, so that the controller must send a snapshot.
        """
        if update.controller_epoch < self.controller_epoch:
            raise KafkaError(
                ErrorCode.STALE_CONTROLLER_EPOCH,
                f"controller {update.controller} of epoch {update.controller_epoch} is over",
            )
        if update.broker_epoch != self.broker_epoch:
            raise KafkaError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"an update for broker epoch {update.broker_epoch}, which is not this broker's",
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
        return self._in_order(update)

    def _in_order(self, update: Update[Change]) -> list[Change]:
        if update.begins:
            self._is_begun, self._snapshot = True, []
        if self._snapshot is None:
            return list(update.changes)
        self._snapshot += update.changes
        if not update.is_complete:
            return []
        snapshot, self._snapshot = self._snapshot, None
        return differences(self._image, ClusterImage.of(snapshot))
