"""The effect of stopping brokers: partitions without a leader, or with too few replicas for acks=all."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from millstream.commands.partition.status import MIN_ISR, Standing
from millstream.terminal.plural import counted

SHOWN = 8
"""How many partitions a message names."""


@dataclass(frozen=True, slots=True)
class Loss:
    """The partitions that lose their leader or fall below min.insync.replicas when brokers stop."""

    leaderless: Sequence[str]
    """Partitions without an in-sync replica that could lead."""
    under_min_isr: Sequence[str]
    """Partitions with a leader and fewer in-sync replicas than min.insync.replicas."""

    @classmethod
    def of(cls, standings: Iterable[Standing], going: Collection[int], alive: Collection[int]) -> Loss:
        """Return the loss when brokers `going` stop.

        Partitions in which none of them is in sync lose nothing.
        """
        leaderless, under = [], []
        for each in standings:
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
