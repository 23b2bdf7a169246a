"""Processes that were told to stand still: SIGSTOP takes effect a little later."""

from __future__ import annotations

from pathlib import Path


def stands_still(pid: int) -> bool:
    """Whether it does by now. Of Linux."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    return stat.rpartition(")")[2].split()[0] == "T"
