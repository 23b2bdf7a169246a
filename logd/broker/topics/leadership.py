"""The partitions of an internal topic that this broker leads, by the elections it was notified of.

No I/O: `coordinator` opens and closes partitions accordingly. Notifications may come twice, late or out of
order. The leader epoch orders them, and an epoch that was resigned never becomes active again.
"""

from __future__ import annotations

from typing import NamedTuple

UNTOLD = -1
"""The leader epoch of a partition that nobody has said anything about."""


class _Term(NamedTuple):
    epoch: int
    leads: bool
    is_complete: bool


class Leadership:
    """By partition index. `leads_untold`: whether what nobody spoke of is led here, as on a single node."""

    def __init__(self, *, leads_untold: bool = True) -> None:
        self._untold = _Term(UNTOLD, leads_untold, False)
        self._terms: dict[int, _Term] = {}

    def leads(self, index: int) -> bool:
        """Return True if this broker leads the partition, as far as it was notified."""
        return self._terms.get(index, self._untold).leads

    def epoch(self, index: int) -> int:
        """Return the newest leader epoch of the partition, or UNTOLD without one."""
        return self._terms.get(index, self._untold).epoch

    def is_complete(self, index: int) -> bool:
        """Return True if the log held all acknowledged records at the election."""
        return self._terms.get(index, self._untold).is_complete

    def elected(self, index: int, epoch: int, *, is_complete: bool) -> bool:
        """Note that this broker leads from `epoch` on. Return True if that is new: older loaded state is then
        invalid.
        """
        if epoch <= self.epoch(index):
            return False
        self._terms[index] = _Term(epoch, True, is_complete)
        return True

    def resigned(self, index: int, epoch: int) -> bool:
        """Note that this broker does not lead as of `epoch`, its own or a later one. Return True if it led
        before.
        """
        if epoch < self.epoch(index):
            return False
        led = self.leads(index)
        self._terms[index] = _Term(epoch, False, False)
        return led

    def not_led(self) -> list[int]:
        """Return the partitions that were resigned and not won again."""
        return [index for index, term in self._terms.items() if not term.leads]

    def forget(self) -> None:
        """Forget all epochs: the topic was deleted, and a new topic of its name begins at the first epoch
        again.
        """
        self._terms.clear()
