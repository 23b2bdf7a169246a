"""WorkerParts: the parts of a worker that its connectors share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from connect.herder.config_state import Properties
from connect.runtime.clients import Clients
from connect.runtime.isolation.messages import PluginPlace
from connect.runtime.plugin_task import NewSourceTask
from connect.runtime.task import TaskSetting, WorkerTask
from connect.runtime.task_metrics import Startups
from connect.runtime.worker_config import WorkerConfig
from connect.stores import OffsetStore


@dataclass(frozen=True, slots=True)
class Startings:
    """Counts of the starts of a worker's connectors and tasks."""

    connectors: Startups = field(default_factory=Startups)
    tasks: Startups = field(default_factory=Startups)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerParts:
    """The parts of a worker that its connectors use."""

    worker_id: str
    config: WorkerConfig
    clients: Clients
    store: OffsetStore
    on_change: Callable[[], None]
    on_plan: Callable[[str, Sequence[Properties]], None]
    """Called with a connector's name and its task configs after each plan."""
    on_expired: Callable[[str, int], None]
    """Called with a connector's name and a task's number, or -1, when a value of its config expires."""
    startings: Startings = field(default_factory=Startings)
    new_source_task: NewSourceTask | None = None
    """Makes source tasks with other stores or with transactions; gets the task's `on_change`, too."""
    new_process_task: Callable[[TaskSetting, PluginPlace | None, Callable[[], None]], WorkerTask] | None = (
        None
    )
    """Makes tasks in processes of their own, likewise."""
    note_topic: Callable[[str, int, str], None] = lambda connector, task, topic: None
    """Called with connector, task number and topic when a task uses a topic (KIP-558)."""
