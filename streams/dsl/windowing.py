"""`Windowing`: what grouping by window, or not, means for an aggregation's store, operator and keys."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias, get_args

from streams.dsl.options import Materialized
from streams.errors import TopologyError
from streams.processors.aggregates.aggregate import Aggregation, aggregate
from streams.processors.aggregates.aggregate_sessions import aggregate_sessions
from streams.processors.aggregates.aggregate_sliding import aggregate_sliding
from streams.processors.aggregates.aggregate_windows import aggregate_windows
from streams.processors.tables.table import OldValues
from streams.processors.windowing.windows import (
    Duration,
    EmitStrategy,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
    milliseconds,
)
from streams.processors.wiring import Operator
from streams.serdes import Serde, SessionWindowed, TimeWindowed
from streams.state import StoreSpec

Windows: TypeAlias = TimeWindows | SlidingWindows | SessionWindows | UnlimitedWindows


@dataclass(frozen=True, slots=True)
class Windowing:
    """Windows, None for none, and when their results go on."""

    windows: Windows | None = None
    emit: EmitStrategy = "on_window_update"
    idle_timeout: Duration | None = None

    def __post_init__(self) -> None:
        if self.windows is not None and not isinstance(self.windows, get_args(Windows)):
            kinds = ", ".join(each.__name__ for each in get_args(Windows))
            raise TopologyError(f"windowed_by() takes one of {kinds}, not {self.windows!r}")
        if self.emit not in get_args(EmitStrategy):
            kinds = " or ".join(get_args(EmitStrategy))
            raise TopologyError(f"emit_strategy is {self.emit!r}, it may be {kinds}")
        if self.emit == "on_window_close" and isinstance(self.windows, UnlimitedWindows):
            raise TopologyError("emit_strategy is on_window_close, but UnlimitedWindows never close")
        if self.idle_timeout is not None:
            if self.emit != "on_window_close":
                raise TopologyError("idle_timeout= is for emit_strategy='on_window_close'")
            check_idle_timeout(self.idle_timeout)

    @property
    def closing_ms(self) -> int | None:
        """How long after its end a window is final, ms; None without windows."""
        return None if self.windows is None else self.windows.closing_ms

    @property
    def is_sliding(self) -> bool:
        """True if windows are sliding, of which Kafka counts names otherwise."""
        return isinstance(self.windows, SlidingWindows)

    def span(self, name: str, materialized: Materialized) -> dict[str, Any]:
        """Return the fields of the store's spec that concern time."""
        windows = self.windows
        if windows is None:
            if materialized.retention is not None:
                raise TopologyError(f"store {name}: retention is for windowed stores")
            return {}
        needed = windows.retention_ms
        retention = needed if materialized.retention is None else milliseconds(materialized.retention)
        if retention < needed:
            raise TopologyError(
                f"store {name}: retention is {retention} ms, windows and grace need at least {needed} ms"
            )
        span: dict[str, Any] = {"kind": "window", "retention_ms": retention}
        match windows:
            case SessionWindows():
                return span | {"kind": "session", "lookback_ms": windows.inactivity_gap_ms}
            case SlidingWindows():
                difference = windows.time_difference_ms
                return span | {"window_size_ms": difference, "lookback_ms": 2 * difference}
            case _:
                return span | {"window_size_ms": windows.size_ms}

    def store_spec(self, spec: StoreSpec) -> StoreSpec:
        """Return the store's spec, changed as emission on window close needs it.

        Kafka caches only time windows then. Reads past the retention depend on it.
        """
        if self.emit == "on_window_update":
            return spec
        return replace(spec, by_time=True, cached=spec.cached and isinstance(self.windows, TimeWindows))

    def operator(
        self, store: str, aggregation: Aggregation, old_values: OldValues, clock: str | None = None
    ) -> Operator:
        """Return the operator that aggregates.

        ``clock`` names the operator's stream time in the store, if several operators write the store.
        """
        idle_ms = None if self.idle_timeout is None else milliseconds(self.idle_timeout)
        how = (aggregation, self.emit, old_values, clock, idle_ms)
        match self.windows:
            case None:
                return aggregate(store, aggregation, old_values)
            case SessionWindows():
                return aggregate_sessions(store, self.windows, *how)
            case SlidingWindows():
                return aggregate_sliding(store, self.windows, *how)
            case _:
                return aggregate_windows(store, self.windows, *how)

    def key_serde(self, inner: Serde[Any]) -> Serde[Any]:
        """Return the serde of the table's keys."""
        match self.windows:
            case None:
                return inner
            case SessionWindows():
                return SessionWindowed(inner)
            case SlidingWindows():
                return TimeWindowed(inner, self.windows.time_difference_ms)
            case _:
                return TimeWindowed(inner, self.windows.size_ms)


NO_WINDOWS = Windowing()


def check_idle_timeout(timeout: Duration) -> None:
    """Raise TopologyError unless the timeout is longer than 0."""
    if milliseconds(timeout) <= 0:
        raise TopologyError(f"idle_timeout is {timeout}, it must be longer than 0")
