"""The controller's end of the feed to one broker: what it is to be told next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from logd.metadata.feed.update import Update

T = TypeVar("T")

CHANGES_PER_UPDATE: Final = 5_000
"""Changes of one update: of partitions, about a megabyte."""
WAITING_MAX: Final = 100_000
"""Changes that may wait for a broker that does not answer; of more it is sent a snapshot once it does."""


class Outbox(Generic[T]):
    """`snapshot` gives the changes that lead to the controller's image as it is now, in the form in which
    `add` is given them.

    Ask for `next`, send it, and tell how that went: `delivered` or `failed`. Until then `next` is the same.
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
        """A snapshot is due."""
        self._waiting: list[T] = []
        self._sent: Update[T] | None = None

    @property
    def waiting(self) -> int:
        """Changes that wait to be sent, at most `WAITING_MAX`."""
        return len(self._waiting)

    def add(self, changes: Sequence[T]) -> None:
        """Queue changes that the controller has applied."""
        if self._begins:
            return  # the snapshot will have them
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
        """Nobody knows whether the update arrived: `next` is the same again. ``must_begin``: the broker has
        said that it misses something, so it is told everything.
        """
        if must_begin and self._sent is not None and self._sent.number == number:
            self.begin_again()

    def begin_again(self) -> None:
        """Have the broker told everything."""
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
