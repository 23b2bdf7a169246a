"""The state of a process after SIGSTOP, which takes effect a little later."""

from __future__ import annotations

from pathlib import Path


def stands_still(pid: int) -> bool:
    """Return True if the process is stopped by now. Reads Linux's /proc."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    return stat.rpartition(")")[2].split()[0] == "T"
