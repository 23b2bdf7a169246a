"""A history with a folder of its own, in memory where the system has such a place."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.cluster_simulation.profile import Profile
from tests.faults.cluster_simulation.simulation import Simulation

IN_MEMORY = Path("/dev/shm")


@contextmanager
def playing(seed: int, profile: Profile | None = None, *, traced: bool = False) -> Iterator[Simulation]:
    """Yield a simulation to run in a folder of its own, which is deleted in the end."""
    where = IN_MEMORY if IN_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(dir=where, prefix="cluster-") as folder:
        yield Simulation(seed, Path(folder), profile, traced=traced)
