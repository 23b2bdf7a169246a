"""Windows without a record of a key, filled in once the key has a later one (pandas' ``resample().ffill()``).

A store has each key's last window. A record of a later window first forwards the windows in between, the
first ``limit`` of them. Their value is that of the last window, or a constant. A record of a window that is
not later is forwarded unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streams.processors.record import Headers, Process
from streams.processors.wiring import Operator, Wiring
from streams.serdes import Window, Windowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """The settings of filling in windows."""

    limit: int
    """The most windows to fill in a gap."""
    constant: Any = None
    """The value of filled windows; None: that of the window before the gap."""
    advance_ms: int | None = None
    """The time between the starts of two windows; None: the windows' size."""


def fill_windows(store_name: str, filling: Filling) -> Operator:
    """Return the operator that fills the gaps between the windows of each key.

    Records with a null key or value are forwarded unchanged.
    """
    limit, constant, advance = filling.limit, filling.constant, filling.advance_ms

    def build(wiring: Wiring) -> Process:
        store, forward = wiring.key_value_store(store_name), wiring.forward
        serialize, lookup, update = store.spec.key_serde.serialize, store.lookup, store.update

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if key is None or value is None:
                forward(key, value, timestamp, headers)
                return
            start, end = key.window
            raw = serialize(key.key)
            last = lookup(raw)
            if last is None or start > last[0][0]:
                update(raw, (start, value), timestamp)
                if last is not None:
                    fill(key.key, last[0], start, end - start, headers)
            forward(key, value, timestamp, headers)

        def fill(key: Any, last: tuple[int, Any], until: int, size: int, headers: Headers) -> None:
            step = size if advance is None else advance
            value = last[1] if constant is None else constant
            first = last[0] + step
            for start in range(first, min(until, first + limit * step), step):
                forward(Windowed(key, Window(start, start + size)), value, start + size - 1, headers)

        return process

    return build
