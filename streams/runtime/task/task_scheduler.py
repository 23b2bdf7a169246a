"""Turns: each task gets a slice of the worker's time, and may decode while the input buffer has room.

Every input decodes a batch at a time. With many or well compressed inputs these batches alone may fill
``input.buffer.max.bytes``. Then tasks without decoded records wait until others have processed theirs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from streams.runtime.task.environment import Clock
from streams.runtime.task.input_buffer import InputBuffer
from streams.runtime.task.running import RunningTask
from streams.runtime.task_id import TaskId

WAITING_TURNS_MAX = 20
"""The number of turns for which a task waits before the others drop their decoded records."""


class TaskScheduler:
    """The distribution of the worker's time. ``turn_ms``: how long a turn of all tasks may take."""

    def __init__(self, buffer: InputBuffer, *, turn_ms: int, clock: Clock) -> None:
        self._buffer = buffer
        self._turn_ms = turn_ms
        self._clock = clock
        self._first: TaskId | None = None
        self._waiting_turns = 0
        self.paused = False
        """True while no input is processed and no schedule fires."""

    def work(self, tasks: Sequence[RunningTask]) -> int:
        """Let each task work for a slice of time. Return the number of processed records.

        If one record takes longer than all slices together, the next turn begins with the tasks after it.
        """
        if self.paused:
            for running in tasks:
                running.task.end_turn()
            return 0
        share = max(1, self._turn_ms // max(1, len(tasks)))
        done = 0
        skipped: list[TaskId] = []
        next_: TaskId | None = None
        end = self._clock() + 2 * self._turn_ms
        for running in self._in_order(tasks):
            task = running.task
            if task.breaks_off or self._clock() >= end:
                next_ = task.id
                break
            task.punctuate()
            task.end_turn()  # Forwards the output of schedules and coroutines.
            if task.holds_decoded or self._buffer.may_decode:
                done += self._process(running, self._clock() + share)
            elif task.has_input:
                skipped.append(task.id)
        self._buffer.contended = bool(skipped)
        self._waiting_turns = self._waiting_turns + 1 if skipped else 0
        if skipped and (not done or self._waiting_turns > WAITING_TURNS_MAX):
            # Tasks with decoded records may wait for another input, or always hold some of several inputs.
            for running in tasks:
                running.task.put_back()
            self._waiting_turns = 0
        self._first = skipped[0] if skipped else next_
        return done

    def _process(self, running: RunningTask, deadline: int) -> int:
        start = time.monotonic()
        done = running.task.process(deadline)
        if done:
            running.process.record(time.monotonic() - start)
        return done

    def _in_order(self, tasks: Sequence[RunningTask]) -> Sequence[RunningTask]:
        begin = next((n for n, running in enumerate(tasks) if running.task.id == self._first), 0)
        return [*tasks[begin:], *tasks[:begin]] if begin else tasks
