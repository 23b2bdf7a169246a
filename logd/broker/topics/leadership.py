"""Which partitions of an internal topic this broker leads, by the elections it was told of.

Pure: `coordinator` opens and closes accordingly. News may come twice, late or out of order; the leader epoch
says which is the newest, and an epoch that was resigned never comes to life again.
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
        """Whether the partition is led here, as far as is known."""
        return self._terms.get(index, self._untold).leads

    def epoch(self, index: int) -> int:
        """The newest leader epoch heard of; UNTOLD without one."""
        return self._terms.get(index, self._untold).epoch

    def is_complete(self, index: int) -> bool:
        """Whether the log is known to have held all that was acknowledged, when it was elected."""
        return self._terms.get(index, self._untold).is_complete

    def elected(self, index: int, epoch: int, *, is_complete: bool) -> bool:
        """This broker leads from `epoch` on; whether that is news: then what was loaded before is over."""
        if epoch <= self.epoch(index):
            return False
        self._terms[index] = _Term(epoch, True, is_complete)
        return True

    def resigned(self, index: int, epoch: int) -> bool:
        """This broker does not lead any more as of `epoch`: its own, or a later one's; whether it did."""
        if epoch < self.epoch(index):
            return False
        led = self.leads(index)
        self._terms[index] = _Term(epoch, False, False)
        return led

    def not_led(self) -> list[int]:
        """What was resigned, and has not been won again."""
        return [index for index, term in self._terms.items() if not term.leads]

    def forget(self) -> None:
        """The topic was deleted: a new one of its name begins at the first epoch again."""
        self._terms.clear()
