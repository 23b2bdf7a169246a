"""The interface of the stores of cluster metadata: one broker's journal, or ZooKeeper."""

from __future__ import annotations

from typing import Protocol

from logd.metadata.image import Change, ClusterImage


class MetadataStore(Protocol):
    """Keeps changes durably and in order. The broker owns the image it loads and replays what it writes."""

    def load(self) -> ClusterImage:
        """Everything stored so far; called once, before anything is written."""

    def compact(self, image: ClusterImage) -> None:
        """``image`` is all there is to remember, and no files of deleted topics are left."""

    async def write(self, changes: list[Change]) -> None:
        """Store changes, all or none; they are durable on return. OSError when they are not."""

    def close(self) -> None:
        """Close the store."""
