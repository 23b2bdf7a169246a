"""`python -m tests.faults.cluster_simulation SEED`: what happens in a history; `FIRST LAST`: many, and
how many per second; `--digest SEED`: what tells it from others.
"""

from __future__ import annotations

import sys
import time
from collections import Counter

from tests.faults.cluster_simulation.playing import playing


def play_many(first: int, last: int) -> int:
    """How many of these seeds break something."""
    began, broken, faults = time.process_time(), 0, Counter[str]()
    for seed in range(first, last):
        with playing(seed) as simulation:
            violations = simulation.run().violations
        faults.update(simulation.faults.happened)
        faults["void histories"] += simulation.is_void
        broken += bool(violations)
        for violation in violations:
            print(f"seed {seed}: {violation}")
    seconds = time.process_time() - began
    told = ", ".join(f"{count} {name}" for name, count in sorted(faults.items()))
    print(f"{last - first} histories, {(last - first) / seconds:.1f} per second of a core: {told}")
    return broken


def main(arguments: list[str]) -> int:
    """The exit status."""
    if arguments[0] == "--digest":
        with playing(int(arguments[1])) as simulation:
            simulation.run()
        print(simulation.digest())
        return 0
    first, *last = map(int, arguments)
    if last:
        return 1 if play_many(first, last[0]) else 0
    with playing(first, traced=True) as simulation:
        violations = simulation.run().violations
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
