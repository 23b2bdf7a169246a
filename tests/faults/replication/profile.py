"""The kinds of histories."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Kind of a history: how much there is of each fault, by weight."""

    duration_ms: int = 2_500
    storms: tuple[int, int] = (2, 6)
    """How many there are; each is a few faults in a short time."""
    late: tuple[float, ...] = (0.02, 0.05, 0.2)
    """Messages that are late, by up to `late_ms`."""
    late_ms: tuple[int, ...] = (60, 150, 400)
    loss: tuple[float, ...] = (0.0, 0.0, 0.02, 0.1)
    kill: int = 2
    power_loss: int = 4
    pause: int = 3
    part: int = 3
    cut_off: int = 3
    elect: int = 4
    reassign: int = 1
    delete: int = 1
    unclean: int = 0
    brokers: tuple[int, ...] = (2, 3, 3, 3, 4)
