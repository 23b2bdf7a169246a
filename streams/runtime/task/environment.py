"""The parts of an instance that its tasks use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from streams.processors.coroutines import Coroutines
from streams.runtime.task.input_buffer import InputBuffer
from streams.runtime.task_id import TaskId
from streams.state import CachedStore

Clock = Callable[[], int]
"""Milliseconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnvironment:
    """The environment of all tasks of an instance."""

    clock: Clock
    buffer: InputBuffer = field(default_factory=InputBuffer)
    """The bound on the fetched records of all tasks."""
    global_stores: Mapping[str, CachedStore] = field(default_factory=dict)
    """The stores of global tables, by name."""
    partition_count: Callable[[str], int] = lambda topic: 1
    """Returns the number of partitions of a sink's topic."""
    topic_name: Callable[[str], str] = lambda topic: topic
    """Returns the cluster's name of one of the topology's topics."""
    coroutines: Coroutines | None = None
    """Runs the coroutines of asynchronous nodes; None if no node has any."""
    between_runs: Callable[[], None] = lambda: None
    """Called after each run of records of one input, in the task's thread."""
    state_dir: Callable[[TaskId], Path] | None = None
    """Creates the folder of a task and returns its path; None if there is no disk."""
