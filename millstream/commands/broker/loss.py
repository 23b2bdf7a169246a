"""What partitions lose when brokers go: their leader, or so many replicas that acks=all is refused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from millstream.commands.partition.status import MIN_ISR, Standing
from millstream.terminal.plural import counted

SHOWN = 8
"""How many partitions are named."""


@dataclass(frozen=True, slots=True)
class Loss:
    """The partitions that stand well enough without some brokers are not in it."""

    leaderless: Sequence[str]
    """Nobody in sync is left, who could lead."""
    under_min_isr: Sequence[str]
    """They are led, and less are in sync than there must be."""

    @classmethod
    def of(cls, known: Iterable[Standing], going: Collection[int], alive: Collection[int]) -> Loss:
        """Of the partitions in which a broker that is going is in sync."""
        leaderless, under = [], []
        for each in known:
            in_sync = set(each.partition.isr)
            if in_sync.isdisjoint(going):
                continue
            left = len(in_sync.intersection(alive).difference(going))
            if not left:
                leaderless.append(str(each.tp))
            elif each.required_in_sync is not None and left < each.required_in_sync:
                under.append(str(each.tp))
        return cls(leaderless, under)

    def __bool__(self) -> bool:
        return bool(self.leaderless or self.under_min_isr)

    def __str__(self) -> str:
        kinds = ((self.leaderless, "without a leader"), (self.under_min_isr, f"under {MIN_ISR}"))
        return ", ".join(
            f"{counted(len(names), 'partition')} {what} ({_shown(names)})" for names, what in kinds if names
        )


def _shown(names: Sequence[str]) -> str:
    more = [f"{len(names) - SHOWN} more"] if names[SHOWN:] else []
    return ", ".join([*names[:SHOWN], *more])
