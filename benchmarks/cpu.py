"""CPU time and memory of a process, as the kernel accounts them."""

from __future__ import annotations

import os
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Return the user and system seconds of a process so far, with its threads and reaped children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return sum(int(field) for field in fields[11:15]) / _TICK


def resident_bytes(pid: int) -> int:
    """Return the resident set size of a process, in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def pid_listening_on(port: int) -> int:
    """Return the id of the process that listens on a local TCP port. Raises LookupError if there is none."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if not Path(table).exists():
            continue
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            if any(os.readlink(link) in inodes for link in (process / "fd").iterdir()):
                return int(process.name)
        except OSError:
            continue
    raise LookupError(f"no process of this machine listens on port {port}: name it with --broker-pid")
