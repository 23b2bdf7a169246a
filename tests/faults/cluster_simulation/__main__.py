"""A history by its seed, or many.

    python -m tests.faults.cluster_simulation 42 [--profile haste] [--bug "adopts stray logs"]
    python -m tests.faults.cluster_simulation 0 100 [--profile haste] [--bug "adopts stray logs"]

The first prints what happens in the history, or with --digest only its digest. The second plays the seeds
from 0 to 99. It prints how many there are per second of a core, what went wrong, and what was acknowledged. A
bug (`planted`) is played with its own profile unless another one is named.
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
def simulation_of(seed: int, options: argparse.Namespace, *, traced: bool = False) -> Iterator[Simulation]:
    """Yield the history that the command line selects."""
    bug = None if options.bug is None else BUGS[options.bug]
    profile = PROFILES.get(options.profile) or (None if bug is None else bug.profile)
    with (
        playing(seed, profile, traced=traced) as simulation,
        nullcontext() if bug is None else bug.plant(),
    ):
        yield simulation


def play_many(options: argparse.Namespace) -> int:
    """Play these seeds and return how many of them break a promise."""
    seeds = range(options.seed, options.last)
    began, broken, happened = time.process_time(), 0, Counter[str]()
    for seed in seeds:
        with simulation_of(seed, options) as simulation:
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
    """Play, and return the exit status: 1 if a promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.cluster_simulation")
    parser.add_argument("seed", type=int)
    parser.add_argument("last", type=int, nargs="?", help="all seeds up to it, and without it")
    parser.add_argument("--profile", choices=PROFILES)
    parser.add_argument("--bug", choices=BUGS, help="planted")
    parser.add_argument("--digest", action="store_true", help="say nothing else of it")
    options = parser.parse_args()
    if options.last is not None:
        return 1 if play_many(options) else 0
    with simulation_of(options.seed, options, traced=not options.digest) as simulation:
        violations = simulation.run().violations
    if options.digest:
        print(simulation.digest())
        return 0
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
