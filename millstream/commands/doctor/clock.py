"""The doctor's look at the machine's clock."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterable
from pathlib import Path

from millstream.commands.doctor.finding import FAILED, OK, WARNING, Finding

_UNSYNCHRONIZED = 5  # TIME_ERROR of adjtimex(2)
_TIMEX_BYTES = 512  # more than struct timex has on any machine
MINUTE_SECONDS = 60.0


def clock(log_dirs: Iterable[Path]) -> Finding:
    """Check that the clock is synchronised, and not behind what was written already.

    Timestamps, retention and logins by tokens go by it.
    """
    newest = max(
        (file.stat().st_mtime for folder in log_dirs for file in folder.glob("*/*.log")),
        default=0.0,
    )
    behind = newest - time.time()
    if behind > MINUTE_SECONDS:
        detail = f"{behind:,.0f} seconds behind the newest segment of log.dirs"
        return Finding("clock", FAILED, detail, "set the clock before the broker starts")
    if is_synchronized() is False:
        remedy = "run a time service, such as chrony or systemd-timesyncd, here or on the host of a container"
        return Finding("clock", WARNING, "not synchronised", remedy)
    return Finding("clock", OK, "synchronised" if is_synchronized() else "no sign of an error")


def is_synchronized() -> bool | None:
    """Return whether the kernel holds its clock for synchronised; None if it does not tell."""
    adjtimex = getattr(ctypes.CDLL(None), "adjtimex", None)  # Linux alone has it
    if adjtimex is None:
        return None
    # All bytes 0: `modes` is 0, so that the clock is only read.
    state = adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    return None if state < 0 else state != _UNSYNCHRONIZED
