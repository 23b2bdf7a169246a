"""A message of the feed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Update(Generic[T]):
    """Changes for one broker, decoded or encoded.

    ``controller_epoch`` fences earlier controllers. ``broker_epoch`` is the registration that the update is
    for: after a later registration the broker refuses it. ``number`` grows by one with each update of a
    controller to that registration, also across snapshots.

    A snapshot is one or more updates: the first one ``begins``, the last one ``is_complete``. Every update
    outside a snapshot is complete.
    """

    controller: int
    controller_epoch: int
    broker_epoch: int
    number: int
    changes: Sequence[T]
    begins: bool = False
    is_complete: bool = True
