"""Which files this process holds open: other threads open and close some of their own meanwhile."""

from __future__ import annotations

import os
from pathlib import Path


def open_below(folder: Path) -> list[str]:
    """Return the files of a folder that this process has open, one for each descriptor."""
    paths: list[str] = []
    for name in os.listdir("/proc/self/fd"):
        try:
            path = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:  # it was closed between the two looks
            continue
        if path.startswith(f"{folder}/"):
            paths.append(path)
    return paths
