"""A message of the feed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Update(Generic[T]):
    """Changes for one broker, as they are or as they travel.

    ``controller_epoch`` fences the controller before; ``broker_epoch`` is the registration of the broker that
    is meant: what was sent to its former life is not for it. ``number`` grows by one with each update of a
    controller to that registration, also over snapshots. A snapshot is one update that ``begins`` and what
    follows, up to the one that ``is_complete``; every update that belongs to none is complete.
    """

    controller: int
    controller_epoch: int
    broker_epoch: int
    number: int
    changes: Sequence[T]
    begins: bool = False
    is_complete: bool = True
