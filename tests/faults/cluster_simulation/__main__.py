"""A history by its seed, or many.

    python -m tests.faults.cluster_simulation 42 [--profile haste] [--bug "adopts stray logs"]
    python -m tests.faults.cluster_simulation 0 100 [--profile haste] [--bug "adopts stray logs"]

The first tells what happens in it; with --digest only what tells it from others. The second plays those from
0 to 99, and says how many there are per second of a core, what went wrong, and what was acknowledged. A bug
(`planted`) is played with its own profile unless another one is named.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from tests.faults.cluster_simulation.planted import BUGS
from tests.faults.cluster_simulation.playing import playing
from tests.faults.cluster_simulation.profile import PROFILES
from tests.faults.cluster_simulation.simulation import Simulation


@contextmanager
def told(seed: int, asked: argparse.Namespace, *, traced: bool = False) -> Iterator[Simulation]:
    """The history that the command line asks for."""
    bug = None if asked.bug is None else BUGS[asked.bug]
    profile = PROFILES.get(asked.profile) or (None if bug is None else bug.profile)
    with (
        playing(seed, profile, traced=traced) as simulation,
        nullcontext() if bug is None else bug.plant(),
    ):
        yield simulation


def play_many(asked: argparse.Namespace) -> int:
    """How many of these seeds break something."""
    seeds = range(asked.seed, asked.last)
    began, broken, happened = time.process_time(), 0, Counter[str]()
    for seed in seeds:
        with told(seed, asked) as simulation:
            checker = simulation.run()
        happened.update(simulation.faults.happened)
        happened["void histories"] += simulation.is_void
        happened["records acknowledged"] += len(checker.acknowledged)
        broken += bool(checker.violations)
        for violation in checker.violations:
            print(f"seed {seed}: {violation}")
    seconds = time.process_time() - began
    text = ", ".join(f"{count} {name}" for name, count in sorted(happened.items()))
    print(f"{len(seeds)} histories, {len(seeds) / seconds:.1f} per second of a core: {text}")
    return broken


def main() -> int:
    """The exit status: 1 where something is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.cluster_simulation")
    parser.add_argument("seed", type=int)
    parser.add_argument("last", type=int, nargs="?", help="all seeds up to it, and without it")
    parser.add_argument("--profile", choices=PROFILES)
    parser.add_argument("--bug", choices=BUGS, help="planted")
    parser.add_argument("--digest", action="store_true", help="say nothing else of it")
    asked = parser.parse_args()
    if asked.last is not None:
        return 1 if play_many(asked) else 0
    with told(asked.seed, asked, traced=not asked.digest) as simulation:
        violations = simulation.run().violations
    if asked.digest:
        print(simulation.digest())
        return 0
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
