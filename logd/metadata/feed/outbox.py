"""The controller's end of the feed to one broker: it returns the next update to send."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from logd.metadata.feed.update import Update

T = TypeVar("T")

CHANGES_PER_UPDATE: Final = 5_000
"""Changes in one update, at most; about 1 MB if they are changes of partitions."""
WAITING_MAX: Final = 100_000
"""Changes that may wait for a broker that does not answer. If there are more, the broker gets a snapshot."""


class Outbox(Generic[T]):
    """The updates for one broker.

    `snapshot` returns the changes that build the controller's current image, encoded like the changes given
    to `add`. Call `next`, send the update, and report the result by `delivered` or `failed`. Until then
    `next` returns the same update.
    """

    def __init__(
        self,
        controller: int,
        controller_epoch: int,
        broker_epoch: int,
        snapshot: Callable[[], Sequence[T]],
    ) -> None:
        self.broker_epoch = broker_epoch
        self._controller = controller
        self._controller_epoch = controller_epoch
        self._snapshot = snapshot
        self._number = 0
        self._rest: list[T] | None = None
        """The rest of a snapshot that is still to be sent; None if no snapshot is being sent."""
        self._begins = True
        """True if the next update begins a snapshot."""
        self._waiting: list[T] = []
        self._sent: Update[T] | None = None

    @property
    def waiting(self) -> int:
        """The number of changes that wait to be sent, at most `WAITING_MAX`."""
        return len(self._waiting)

    def add(self, changes: Sequence[T]) -> None:
        """Queue changes that the controller has applied."""
        if self._begins:
            return  # the snapshot will include these changes
        self._waiting += changes
        if len(self._waiting) > WAITING_MAX:
            self.begin_again()

    def next(self) -> Update[T] | None:
        """Return the update to send now, or None if the broker is up to date."""
        if self._sent is None:
            self._sent = self._made()
        return self._sent

    def delivered(self, number: int) -> None:
        """Note that the broker has applied the update of that number."""
        if self._sent is not None and self._sent.number == number:
            self._sent = None

    def failed(self, number: int, *, must_begin: bool) -> None:
        """Note that the controller does not know whether the update arrived: `next` returns it again.

        If ``must_begin``, the broker has answered that an earlier update is missing, so `next` begins a
        snapshot.
        """
        if must_begin and self._sent is not None and self._sent.number == number:
            self.begin_again()

    def begin_again(self) -> None:
        """Begin a snapshot with the next update."""
        self._begins, self._rest, self._waiting, self._sent = True, None, [], None

    def _made(self) -> Update[T] | None:
        begins = self._begins
        if begins:
            self._rest, self._begins = list(self._snapshot()), False
        source = self._waiting if self._rest is None else self._rest
        if not (source or begins):
            return None
        changes, rest = source[:CHANGES_PER_UPDATE], source[CHANGES_PER_UPDATE:]
        is_complete = True
        if self._rest is None:
            self._waiting = rest
        else:
            self._rest, is_complete = rest or None, not rest
        self._number += 1
        return Update(
            controller=self._controller,
            controller_epoch=self._controller_epoch,
            broker_epoch=self.broker_epoch,
            number=self._number,
            changes=changes,
            begins=begins,
            is_complete=is_complete,
        )
