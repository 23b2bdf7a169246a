"""`BranchedKStream`: a stream that is being split. How branches are put into the graph is in `branches`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from streams.dsl.branches import Branches
from streams.dsl.stream import Stream
from streams.errors import TopologyError

if TYPE_CHECKING:
    from streams.dsl.nouns.kstream import KStream

K = TypeVar("K")
V = TypeVar("V")


class BranchedKStream(Generic[K, V]):
    """A stream being split: a record goes to the first branch whose predicate takes it, else to the default
    branch, else nowhere. `default_branch` or `no_default_branch` ends it, with the branches by name: the
    split's name and the branch's, as Kafka puts them together.
    """

    def __init__(self, branches: Branches, as_kstream: Callable[[Stream], KStream[K, V]]) -> None:
        self._branches = branches
        self._as_kstream = as_kstream
        self._streams: dict[str, KStream[K, V]] = {}

    def branch(
        self,
        predicate: Callable[[K, V], bool],
        *,
        name: str | None = None,
        chain: Callable[[KStream[K, V]], KStream[Any, Any] | None] | None = None,
        consumer: Callable[[KStream[K, V]], object] | None = None,
    ) -> BranchedKStream[K, V]:
        """Add a branch; unnamed ones are numbered from 1. ``chain(stream)`` gives the stream that is returned
        in the branch's place, if any; ``consumer(stream)`` takes the branch, which is not returned then.
        """
        self._take(self._as_kstream(self._branches.add(predicate, name)), chain, consumer)
        return self

    def default_branch(
        self,
        *,
        name: str | None = None,
        chain: Callable[[KStream[K, V]], KStream[Any, Any] | None] | None = None,
        consumer: Callable[[KStream[K, V]], object] | None = None,
    ) -> dict[str, KStream[K, V]]:
        """Send records that no predicate takes to a branch; return all branches by name.

        The branch is named 0 unless ``name`` is given.
        """
        self._take(self._as_kstream(self._branches.add_default(name)), chain, consumer)
        return self._streams

    def no_default_branch(self) -> dict[str, KStream[K, V]]:
        """Drop records that no predicate takes; return the branches by name."""
        self._branches.close()
        return self._streams

    def _take(
        self,
        stream: KStream[K, V],
        chain: Callable[[KStream[K, V]], KStream[Any, Any] | None] | None,
        consumer: Callable[[KStream[K, V]], object] | None,
    ) -> None:
        if chain is not None and consumer is not None:
            raise TopologyError("a branch has a chain or a consumer, not both")
        name = stream._stream.node
        if consumer is not None:
            consumer(stream)
        elif chain is None:
            self._streams[name] = stream
        elif (chained := chain(stream)) is not None:
            self._streams[name] = chained
