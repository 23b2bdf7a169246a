"""The application's states and their transitions (Kafka Streams' KafkaStreams.State)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TypeAlias


class State(Enum):
    """A state of the application."""

    CREATED = "CREATED"
    REBALANCING = "REBALANCING"
    RUNNING = "RUNNING"
    PENDING_SHUTDOWN = "PENDING_SHUTDOWN"
    NOT_RUNNING = "NOT_RUNNING"
    PENDING_ERROR = "PENDING_ERROR"
    ERROR = "ERROR"


FOLLOWS: Mapping[State, frozenset[State]] = {
    State.CREATED: frozenset({State.REBALANCING, State.PENDING_SHUTDOWN, State.PENDING_ERROR}),
    State.REBALANCING: frozenset({State.RUNNING, State.PENDING_SHUTDOWN, State.PENDING_ERROR}),
    State.RUNNING: frozenset({State.REBALANCING, State.PENDING_SHUTDOWN, State.PENDING_ERROR}),
    State.PENDING_SHUTDOWN: frozenset({State.NOT_RUNNING, State.PENDING_ERROR}),
    State.PENDING_ERROR: frozenset({State.ERROR}),
    State.NOT_RUNNING: frozenset(),
    State.ERROR: frozenset(),
}

StateListener: TypeAlias = Callable[[State, State], None]
"""Called with the new state and the old one, in the event loop."""


class Status:
    """The current state. Transitions that are not in the table are ignored."""

    def __init__(self) -> None:
        self.state = State.CREATED
        self.listeners: list[StateListener] = []

    def become(self, state: State) -> bool:
        """Move to ``state`` and call the listeners. Return False if the table does not allow it."""
        old = self.state
        if state not in FOLLOWS[old]:
            return False
        self.state = state
        for listener in self.listeners:
            listener(state, old)
        return True
