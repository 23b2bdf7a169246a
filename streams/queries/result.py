"""Answers to queries, one for each queried partition (KIP-796)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from streams.errors import InvalidStateStore
from streams.queries.position import Position


class FailureReason(Enum):
    """The reason why a store did not answer, by Kafka's names."""

    UNKNOWN_QUERY_TYPE = "UNKNOWN_QUERY_TYPE"
    """A store of this kind does not support the query."""
    NOT_UP_TO_BOUND = "NOT_UP_TO_BOUND"
    """The store has not reached the bound: ask again, or ask another copy."""
    NOT_PRESENT = "NOT_PRESENT"
    """The partition is not in this instance: another one has it."""
    NOT_ACTIVE = "NOT_ACTIVE"
    """This instance has only a copy, and the query requires the active task."""
    STORE_EXCEPTION = "STORE_EXCEPTION"
    """The store raised an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """A partition's answer: a value, or a failure."""

    value: Any = None
    position: Position = field(default_factory=Position)
    """The position of the store when it answered."""
    active: bool = True
    """True if the running task answered, False for a copy."""
    failure: FailureReason | None = None
    message: str = ""
    """The failure's text, with what to do about it."""

    @property
    def is_success(self) -> bool:
        """True if there is no failure."""
        return self.failure is None

    def get(self) -> Any:
        """Return the value. Raises InvalidStateStore after a failure."""
        if self.failure is not None:
            raise InvalidStateStore(self.message)
        return self.value


@dataclass(frozen=True, slots=True)
class StateQueryResult:
    """The answers of all partitions."""

    partition_results: Mapping[int, QueryResult]

    @property
    def position(self) -> Position:
        """The merged position of all answers; as a bound, it has a later query see at least the same."""
        merged = Position()
        for each in self.partition_results.values():
            merged = merged.merge(each.position)
        return merged

    @property
    def only_partition_result(self) -> QueryResult | None:
        """The only answer with a value, None if there is none.

        Raises InvalidStateStore if several partitions have a value, or one failed.
        """
        results = [
            each for each in self.partition_results.values() if not each.is_success or each.value is not None
        ]
        for each in results:
            each.get()
        if len(results) > 1:
            raise InvalidStateStore(f"{len(results)} partitions answered: look at partition_results")
        return results[0] if results else None
