"""The offset syncs of one partition that translation uses: 64 of any number, dense at the end of the log.

The syncs and their order are those of Kafka's OffsetSyncStore. After each `add`:

A. Slot 0 has the latest sync.
B. For slots i < j: syncs[i].upstream <= syncs[j].upstream + 2^j - 2^i. So the age of slot j is bounded.
C. For slots i < j: two slots have the same sync, or syncs[i].upstream >= syncs[j].upstream + 2^max(i-2, 0).
   So slots are not spent on syncs that are close to each other.
"""

from __future__ import annotations

from mirror.offsets import NO_RUN, OffsetSync

SLOTS = 64


class SyncSlots:
    """Up to `SLOTS` offset syncs of one partition, the latest first; `first` is the first in the topic."""

    def __init__(self, first: OffsetSync) -> None:
        self._syncs = [first] * SLOTS

    def replace_all(self, sync: OffsetSync) -> None:
        """Drop all syncs and begin again with `sync`."""
        self._syncs = [sync] * SLOTS

    def add(self, sync: OffsetSync) -> None:
        """Add the latest sync. One that is before the last sync makes all earlier ones invalid."""
        if sync.upstream < self._syncs[0].upstream:
            self.replace_all(sync)
            return
        before, syncs = self._syncs, self._syncs.copy()
        syncs[0] = replacement = sync
        candidate = 0
        for slot in range(1, SLOTS):
            while True:
                old = before[candidate]
                is_separate = _is_separate(syncs[slot - 1], old, slot - 1)
                is_usable = (
                    is_separate
                    and _is_recent(syncs[slot - 1], old, slot - 1, slot)
                    and (slot + 1 == SLOTS or _is_separate(old, syncs[slot + 1], slot))
                )
                if is_usable:
                    replacement = old
                is_repeated = candidate + 1 < SLOTS and before[candidate + 1] is old
                is_spent = is_repeated or not is_separate
                if is_usable or is_spent:
                    candidate += 1
                if candidate >= slot or not is_spent:
                    break
            if _is_recent(syncs[slot - 1], syncs[slot], slot - 1, slot):
                break  # the later slots are unchanged
            syncs[slot] = replacement
        self._syncs = syncs

    def translate(self, upstream: int) -> int:
        """Return the downstream offset for a consumer that goes on at `upstream`, or -1 if it is too old."""
        oldest = self._syncs[-1]
        if oldest.first_translated > upstream:
            return -1
        nearest = next((sync for sync in self._syncs if sync.first_translated <= upstream), oldest)
        return nearest.translate(upstream)

    def upper_bound(self, upstream: int) -> int | None:
        """Return the highest downstream offset that a consumer at `upstream` can be at, or None if unknown.

        The target's offsets have no gaps, so they never advance faster than the source's.
        """
        bounds = [bound for sync in self._syncs if (bound := _upper_bound(sync, upstream)) is not None]
        return min(bounds, default=None)

    def translate_back(self, downstream: int) -> int | None:
        """Return the upstream offset at which a consumer goes on that goes on at `downstream` in the target.

        In a run the offset is exact, otherwise it may be too low. Return None if it is older than all syncs.
        """
        bounds = [bound for sync in self._syncs if (bound := _lower_bound(sync, downstream)) is not None]
        return max(bounds, default=None)


def _is_recent(later: OffsetSync, earlier: OffsetSync, i: int, j: int) -> bool:
    """Return True if invariant B holds for the syncs of slots i and j."""
    return later.upstream <= earlier.upstream + (1 << j) - (1 << i)


def _is_separate(later: OffsetSync, earlier: OffsetSync, i: int) -> bool:
    """Return True if invariant C holds for the sync of slot i and that of a slot after it."""
    return later is earlier or later.upstream >= earlier.upstream + (1 << max(i - 2, 0))


def _upper_bound(sync: OffsetSync, upstream: int) -> int | None:
    if upstream >= sync.next_upstream:
        return sync.next_downstream + upstream - sync.next_upstream
    if sync.first_translated <= upstream and sync.run_start != NO_RUN:
        return sync.translate(upstream)
    if upstream >= sync.upstream:
        return sync.downstream + upstream - sync.upstream
    return sync.downstream


def _lower_bound(sync: OffsetSync, downstream: int) -> int | None:
    after = downstream - sync.next_downstream
    run = 0 if sync.run_start == NO_RUN else sync.next_upstream - sync.run_start
    if after >= -run:
        return sync.next_upstream + after
    if downstream >= sync.downstream:
        return sync.upstream + downstream - sync.downstream
    return None
