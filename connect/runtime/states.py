"""States of connectors and tasks, and their status; names and shapes as in Kafka's REST interface."""

from __future__ import annotations

import time
import traceback
from collections import defaultdict
from collections.abc import Callable
from enum import StrEnum
from typing import Any


class State(StrEnum):
    """State of a connector or a task; only connectors may be STOPPED."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"


class Status:
    """A connector's or task's state, with the trace of its failure.

    `on_change` is called after each transition. `clock` returns monotonic seconds.
    """

    def __init__(
        self, on_change: Callable[[], None] = lambda: None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._entered_at = clock()
        self._spent: defaultdict[State, float] = defaultdict(float)
        self.state = State.UNASSIGNED
        self.trace: str | None = None
        self.changed = on_change

    def become(self, state: State) -> None:
        """Change to `state`, and forget the trace of a failure."""
        if state is self.state:
            return
        self._enter(state)
        self.trace = None
        self.changed()

    def fail(self, error: BaseException) -> None:
        """Change to FAILED, with the error's trace."""
        if self.state is State.FAILED:
            return
        self._enter(State.FAILED)
        self.trace = "".join(traceback.format_exception(error))
        self.changed()

    def take(self, state: State, trace: str | None) -> None:
        """Change to the state and trace of a task in another process."""
        if (state, trace) == (self.state, self.trace):
            return
        if state is not self.state:
            self._enter(state)
        self.trace = trace
        self.changed()

    def share_of_time(self, state: State) -> float:
        """Return the share of time since creation spent in this state, from 0 to 1."""
        now = self._clock() - self._entered_at
        whole = sum(self._spent.values()) + now
        spent = self._spent.get(state, 0.0) + (now if state is self.state else 0)
        return spent / whole if whole else float(state is self.state)

    def _enter(self, state: State) -> None:
        now = self._clock()
        self._spent[self.state] += now - self._entered_at
        self.state, self._entered_at = state, now

    def report(self, worker_id: str, version: str) -> dict[str, Any]:
        """Return the state in the JSON shape of GET /connectors/{c}/status."""
        shown = {"state": self.state.value, "worker_id": worker_id, "version": version}
        return shown if self.trace is None else {**shown, "trace": self.trace}
