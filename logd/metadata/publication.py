"""What the controller publishes, and the image that a broker keeps by it.

A snapshot comes first, and then every batch of changes with the next number. A broker that has missed one
asks for a snapshot again. How the messages travel is left to the broker.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from logd.metadata.differences import differences
from logd.metadata.image import Change, ClusterImage


class Publication(NamedTuple):
    """The controller's epoch, a running number, and changes to apply in their order.

    A snapshot's changes lead from nothing to all there is; the changes numbered one higher follow it.
    """

    controller_epoch: int
    number: int
    changes: list[Change]
    is_snapshot: bool = False


class Taking(Enum):
    """What became of a publication."""

    APPLIED = "applied"
    """The image has it."""
    STALE = "stale"
    """It is of a former controller, or known already: STALE_CONTROLLER_EPOCH where its epoch is lower."""
    MISSED = "missed"
    """Something before it is missing: ask this controller for a snapshot."""


class Taken(NamedTuple):
    """``changes`` are those by which the image has changed, for partitions to be opened and closed by."""

    taking: Taking
    changes: list[Change]


class PublishedImage:
    """``image`` as it was published up to ``number`` by the controller of ``controller_epoch``.

    It stays the same object, whoever publishes.
    """

    def __init__(self) -> None:
        self.image = ClusterImage()
        self.controller_epoch = -1
        self.number = -1

    def take(self, published: Publication) -> Taken:
        """Apply a publication if it is its turn."""
        known = self.controller_epoch, self.number
        if published.is_snapshot:
            if published[:2] < known:
                return Taken(Taking.STALE, [])
            changes = differences(self.image, ClusterImage.of(published.changes))
        elif published[:2] <= known:
            return Taken(Taking.STALE, [])
        elif published[:2] != (self.controller_epoch, self.number + 1):
            return Taken(Taking.MISSED, [])
        else:
            changes = published.changes
        for change in changes:
            self.image.apply(change)
        self.controller_epoch, self.number = published[:2]
        return Taken(Taking.APPLIED, changes)
