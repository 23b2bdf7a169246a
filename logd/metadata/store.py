"""The interface of the stores of cluster metadata: a standalone broker's journal, or ZooKeeper."""

from __future__ import annotations

from typing import Protocol

from logd.metadata.image import Change, ClusterImage


class MetadataStore(Protocol):
    """A durable, ordered store of changes.

    The broker owns the image that it loads, and replays the changes that it writes.
    """

    def load(self) -> ClusterImage:
        """Return the image of all stored changes. Call it once, before the first write."""

    def compact(self, image: ClusterImage) -> None:
        """Replace the store's changes by those that build ``image``, if these are far fewer.

        The ids of deleted topics are lost with them. So call it only when no files of deleted topics are
        left.
        """

    async def write(self, changes: list[Change]) -> None:
        """Store all of the changes or none; they are durable on return. Raises OSError if none is stored."""

    def close(self) -> None:
        """Close the store."""
