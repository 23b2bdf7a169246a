"""Profiles of histories: how long they are, how busy their clients, and how frequent each fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """`pause_s`: how long clients rest at most between two records or transactions."""

    brokers: int = 3
    storm_s: float = 3.5
    lengths_s: tuple[float, ...] = (0.3, 1.0, 3.0)
    """How long faults last, at most: shorter than a session with ZooKeeper, and longer."""
    transaction_ms: int = 4_000
    """How long transactions may be open."""
    aborts: float = 0.3
    """How many transactions are aborted."""
    open_s: float = 0.03
    """How long at most a producer rests within a transaction, after each record."""
    faults: tuple[int, int] = (2, 7)
    pause_s: float = 0.4
    slow: tuple[float, ...] = (0.0, 0.05, 0.3)
    slow_s: tuple[float, ...] = (0.01, 0.1, 0.4)
    """A history draws one of each: the share of data that is late, and the longest delay in seconds."""
    renews: float = 0.4
    """How often there is a client that has a topic deleted and made again."""
    twins: float = 0.25
    """How often two processes have one transactional id."""
    moves: bool = False
    """Whether there is an operator who has partitions moved from broker to broker."""
    late_s: float = 0.0
    """How much later than two places are together what was stuck between them arrives, at most."""
    peer_timeout_ms: int = 30_000
    """How long brokers wait for each other's answers."""
    versions: tuple[int, ...] = ()
    """Each transactional producer draws one of these transaction versions; without any it uses the newest."""
    elects: tuple[float, ...] = ()
    """A history draws one: the longest rest in seconds of an operator who moves leaders.

    Without any there is none.
    """
    stale_s: float = 0.0
    """How long at most two of three servers of ZooKeeper do not know what the third has decided."""
    changes_per_update: tuple[int, ...] = ()
    """A history draws one: how many changes a part of a broker's update has.

    Without any it is as many as always.
    """
    weights: Mapping[str, int] = field(
        default_factory=lambda: {
            "kill": 2,
            "lose_power": 1,
            "pause": 1,
            "shut_down": 1,
            "part_brokers": 1,
            "part_from_zookeeper": 1,
            "isolate": 1,
            "part_client": 1,
            "drop_connections": 1,
            "lose_zookeeper_connection": 1,
            "zookeeper_away": 1,
            "depose_controller": 1,
        }
    )
    """Weights of the faults (`faults.Faults`), by name."""


HASTE = Profile(
    faults=(8, 12),
    pause_s=0.1,
    renews=0.0,
    weights={"kill": 4, "pause": 3, "isolate": 2, "part_brokers": 2, "part_from_zookeeper": 2},
)
"""Leaders come and go before everybody has all."""
RENEWAL = Profile(faults=(5, 8), renews=1.0, weights={"kill": 3, "shut_down": 1, "isolate": 1})
"""Topics are deleted and made again while brokers are away."""
TWINS = Profile(faults=(1, 3), pause_s=0.1, renews=0.0, twins=1.0)
"""Two processes have one transactional id."""
DEPOSED = Profile(
    faults=(10, 14),
    pause_s=0.1,
    slow=(0.3,),
    slow_s=(0.4,),
    weights={
        "depose_controller": 8,
        "pause": 3,
        "kill": 2,
        "part_from_zookeeper": 2,
        "lose_zookeeper_connection": 2,
        "isolate": 1,
    },
)
"""Controllers change while what the one before has written is late."""
STALE = replace(DEPOSED, stale_s=0.4)
"""And what it reads from ZooKeeper is old."""
MOVES = Profile(
    storm_s=5.0,
    brokers=4,
    faults=(3, 8),
    pause_s=0.2,
    renews=0.2,
    moves=True,
    stale_s=0.3,
    changes_per_update=(1, 2, 3),
)
"""Partitions move from broker to broker, the coordinators' too, and brokers are told piece by piece."""
LATE = Profile(
    storm_s=14.0,
    lengths_s=(1.0, 4.0, 7.0),
    transaction_ms=15_000,
    aborts=0.5,
    open_s=1.0,
    faults=(3, 6),
    pause_s=0.05,
    renews=0.0,
    twins=0.0,
    slow=(0.0, 0.05),
    late_s=3.0,
    peer_timeout_ms=1_000,
    versions=(1, 1, 1, 2),
    elects=(0.5, 3.0),
    weights={
        "part_brokers": 4,
        "drop_connections": 3,
        "pause": 1,
        "kill": 1,
        "part_from_zookeeper": 1,
    },
)
"""Brokers' requests to each other arrive late, while leaders change."""

PROFILES: Mapping[str, Profile] = {
    "everything": Profile(),
    "haste": HASTE,
    "renewal": RENEWAL,
    "twins": TWINS,
    "deposed": DEPOSED,
    "stale": STALE,
    "moves": MOVES,
    "late": LATE,
}
"""By name; the first is a little of everything."""
