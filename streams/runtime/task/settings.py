"""The settings of an application that its tasks obey."""

from __future__ import annotations

from dataclasses import dataclass, field

from streams.config import StreamsConfig
from streams.topology import Handlers


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """The settings that are the same for each task of an application."""

    application_id: str = ""
    max_idle_ms: int = 0
    """How long to wait for an empty input; negative: never wait, not even for records at the broker."""
    windowed_emit_interval_ms: int = 0
    """How often windowed aggregations emit results on window close."""
    outer_join_emit_interval_ms: int = 1000
    """How often outer joins of streams emit records that found no partner."""
    handlers: Handlers = field(default_factory=Handlers)
    """The handlers of records that cannot be read, processed or written."""

    @classmethod
    def of(cls, config: StreamsConfig) -> TaskSettings:
        """Return the task settings of an application's configuration."""
        return cls(
            application_id=config.application_id,
            max_idle_ms=config.max_task_idle_ms,
            windowed_emit_interval_ms=config.emit_interval_ms_kstreams_windowed_aggregation,
            outer_join_emit_interval_ms=config.emit_interval_ms_kstreams_outer_join_spurious_results_fix,
            handlers=Handlers(
                deserialization=config.deserialization_exception_handler,
                processing=config.processing_exception_handler,
                production=config.production_exception_handler,
                dead_letter_topic=config.errors_dead_letter_queue_topic_name,
            ),
        )
