"""Answers to queries, one for each partition that was asked (KIP-796)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from streams.errors import InvalidStateStore
from streams.queries.position import Position


class FailureReason(Enum):
    """Why a store did not answer; by Kafka's names."""

    UNKNOWN_QUERY_TYPE = "UNKNOWN_QUERY_TYPE"
    """A store of this kind does not take such a query."""
    NOT_UP_TO_BOUND = "NOT_UP_TO_BOUND"
    """It is not as far yet: ask again, or ask another copy."""
    NOT_PRESENT = "NOT_PRESENT"
    """That partition is not here: another instance has it."""
    NOT_ACTIVE = "NOT_ACTIVE"
    """Only a copy is here, and the active one was asked for."""
    STORE_EXCEPTION = "STORE_EXCEPTION"
    """The store raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """One partition's answer: a ``value`` as of ``position``, or a ``failure`` and what to do about it.

    ``active``: of the running task, rather than of a copy.
    """

    value: Any = None
    position: Position = field(default_factory=Position)
    active: bool = True
    failure: FailureReason | None = None
    message: str = ""

    @property
    def is_success(self) -> bool:
        """True if there is an answer."""
        return self.failure is None

    def get(self) -> Any:
        """The value; InvalidStateStore if there is none."""
        if self.failure is not None:
            raise InvalidStateStore(self.message)
        return self.value


@dataclass(frozen=True, slots=True)
class StateQueryResult:
    """All answers, by partition."""

    partition_results: Mapping[int, QueryResult]

    @property
    def position(self) -> Position:
        """Of all answers together; a bound for a later query, so that that one sees no less."""
        merged = Position()
        for each in self.partition_results.values():
            merged = merged.merge(each.position)
        return merged

    @property
    def only_partition_result(self) -> QueryResult | None:
        """The one answer that there is, besides those that found nothing; None if none found anything.

        Raises InvalidStateStore if several did, or one failed.
        """
        found = [
            each for each in self.partition_results.values() if not each.is_success or each.value is not None
        ]
        for each in found:
            each.get()
        if len(found) > 1:
            raise InvalidStateStore(f"{len(found)} partitions answered: look at partition_results")
        return found[0] if found else None
