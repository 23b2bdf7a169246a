"""Windows in which a key had no record, filled in once it has a later one (pandas' ``resample().ffill()``).

Kept is each key's last window. A record of a later one is preceded by those in between, the first ``limit``
of them, with the last window's value or a given one. What comes for a window that is not later goes on as it
is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streams.processors.record import Headers, Process
from streams.processors.wiring import Operator, Wiring
from streams.serdes import Window, Windowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """``constant``: what windows are filled with, None for the value of the window before the gap.
    ``advance_ms``: from the start of a window to the next one's; None for windows that do not overlap.
    """

    limit: int
    constant: Any = None
    advance_ms: int | None = None


def fill_windows(store_name: str, filling: Filling) -> Operator:
    """Fill the gaps between the windows of each key; keys and values that are null go on as they are."""
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
