"""Orders of Java's collections, on which the text of ``Topology.describe()`` depends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def bucket_of(count: int) -> Callable[[str], int]:
    """Return a function that returns a string's bucket in a HashMap of ``count`` entries.

    Entries of a bucket are in the order of insertion.
    """
    buckets = 16
    while count > buckets * 3 // 4:
        buckets *= 2

    def bucket(name: str) -> int:
        value = 0
        for character in name:
            value = (31 * value + ord(character)) & 0xFFFFFFFF
        return (value ^ value >> 16) & (buckets - 1)

    return bucket


@dataclass(slots=True, eq=False)
class _Branch(Generic[T]):
    item: T
    parent: _Branch[T] | None
    left: _Branch[T] | None = None
    right: _Branch[T] | None = None
    red: bool = True


class TreeSet(Generic[T]):
    """A red-black tree whose items may change their rank after insertion.

    The items with which a new one is compared, and so its place, depend on the tree's shape.
    """

    def __init__(self, rank: Callable[[T], Any]) -> None:
        self._rank = rank
        self._root: _Branch[T] | None = None

    def add(self, item: T) -> None:
        """Insert an item, unless one of the same rank is on the path to its place."""
        rank, at, parent, before = self._rank(item), self._root, None, False
        while at is not None:
            other = self._rank(at.item)
            if rank == other:
                return
            parent, before = at, rank < other
            at = at.left if before else at.right
        branch = _Branch(item, parent)
        if parent is None:
            self._root = branch
        elif before:
            parent.left = branch
        else:
            parent.right = branch
        self._balance(branch)

    def __iter__(self) -> Iterator[T]:
        return self._walk(self._root)

    def _walk(self, branch: _Branch[T] | None) -> Iterator[T]:
        if branch is not None:
            yield from self._walk(branch.left)
            yield branch.item
            yield from self._walk(branch.right)

    def _balance(self, branch: _Branch[T]) -> None:
        """Ensure that no red branch has a red parent: recolour upwards, and rotate if the uncle is black."""
        while (parent := branch.parent) is not None and parent.red:
            above = parent.parent
            assert above is not None, "the root is black"
            uncle = above.right if parent is above.left else above.left
            if uncle is not None and uncle.red:
                parent.red = uncle.red = False
                above.red = True
                branch = above
                continue
            if (branch is parent.left) != (parent is above.left):
                self._rotate(branch)
                branch, parent = parent, branch
            parent.red, above.red = False, True
            self._rotate(parent)
        assert self._root is not None
        self._root.red = False

    def _rotate(self, branch: _Branch[T]) -> None:
        """Move a branch to its parent's place, and the parent below it."""
        parent = branch.parent
        assert parent is not None
        above = parent.parent
        if branch is parent.left:
            moved = parent.left = branch.right
            branch.right = parent
        else:
            moved = parent.right = branch.left
            branch.left = parent
        if moved is not None:
            moved.parent = parent
        parent.parent, branch.parent = branch, above
        if above is None:
            self._root = branch
        elif above.left is parent:
            above.left = branch
        else:
            above.right = branch


class PriorityQueue(Generic[T]):
    """A heap, least rank first. Items of equal rank are in the same order as in Java's PriorityQueue."""

    def __init__(self, rank: Callable[[T], Any]) -> None:
        self._rank = rank
        self._heap: list[T] = []

    def __len__(self) -> int:
        return len(self._heap)

    def offer(self, item: T) -> None:
        """Add an item: it rises as long as it is less than the item above it."""
        heap, rank = self._heap, self._rank(item)
        at = len(heap)
        heap.append(item)
        while at and rank < self._rank(heap[above := (at - 1) // 2]):
            heap[at], at = heap[above], above
        heap[at] = item

    def poll(self) -> T:
        """Remove and return the first item; the last takes its place and sinks below lesser ones."""
        heap = self._heap
        first, item = heap[0], heap.pop()
        if not heap:
            return first
        at, rank = 0, self._rank(item)
        while (below := 2 * at + 1) < len(heap):
            if below + 1 < len(heap) and self._rank(heap[below + 1]) < self._rank(heap[below]):
                below += 1
            if rank <= self._rank(heap[below]):
                break
            heap[at], at = heap[below], below
        heap[at] = item
        return first
