"""A follower's log beside a ledger's, which is its leader: copied run by run, on a disk that may die."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from kafka_client.records import iter_batches
from logd.storage import LogDirectory
from logd.storage.disk import read_slice
from logd.storage.log.truncation import Truncation
from tests.faults.ledger import KEY, NOW, Ledger, let_go
from tests.support.power_loss import PowerLossDisk


class Follower:
    """`sent` are the batches by base offset, as the leader sent them; `promised` is what has to be on the
    disk, where the log ended at the last flush.
    """

    def __init__(self, leader: Ledger, path: Path, rng: random.Random) -> None:
        self.leader = leader
        self.path = path
        self.rng = rng
        self.sent: dict[int, bytes] = {}
        self.promised = 0
        path.mkdir(parents=True)
        self.disk = PowerLossDisk(path, rng)
        self.folder = self._opened()
        self.log = self.folder.create_log(*KEY, topic_id=bytes(16), config=leader.config, now_ms=NOW)
        self.disk.sync_folder(path)
        self.disk.sync_folder(self.log.directory)

    def _opened(self) -> LogDirectory:
        config = self.leader.config
        return LogDirectory.open(
            self.path,
            node_id=1,
            cluster_id="cluster",
            config_for=lambda topic: config,
            now_ms=NOW,
            disk=self.disk,
            is_replicated=True,
        )

    def fetched(self, bytes_max: int = 1 << 20) -> bytes:
        """Return the leader's answer to a fetch at the log's end; sometimes its end is cut off."""
        piece = self.leader.log.reader.read(self.log.log_end_offset, bytes_max)
        data = b"" if piece is None else read_slice(piece)
        sizes = [header.size for _, header in iter_batches(data)]
        if len(sizes) > 1 and self.rng.random() < 0.3:
            data = data[: len(data) - self.rng.randint(1, sizes[-1])]
        return data

    def copy(self) -> None:
        """Copy the next run."""
        data = self.fetched(self.rng.choice((1, 500, 3_000, 1 << 20)))
        end = self.log.log_end_offset
        run = self.log.copier.append(data, max(self.leader.epoch, 0), NOW)
        whole = list(iter_batches(data))
        assert run.batches == len(whole) and run.size == sum(header.size for _, header in whole)
        assert run.base_offset == (whole[0][1].base_offset if whole else end)
        for position, header in whole:
            self.sent[header.base_offset] = data[position : position + header.size]
        assert self.log.log_end_offset == run.end_offset == (whole[-1][1].next_offset if whole else end)
        self.log.replicated_to(self.log.log_end_offset)

    def catch_up(self) -> None:
        """Copy until both logs end at the same offset."""
        self.reconcile()
        while self.log.log_end_offset < self.leader.log.log_end_offset:
            self.copy()
        # A follower's log begins where its leader's does.
        for deletion in self.log.shortening.delete_records_before(self.leader.log.log_start_offset):
            deletion.run()

    def reconcile(self) -> None:
        """Go back to where the leader's history is this one's (KIP-320), or to where the leader begins."""
        log, leader = self.log, self.leader.log
        while (epoch := log.latest_epoch) >= 0:
            known_epoch, end = leader.end_offset_for_epoch(epoch)
            if known_epoch == epoch and end >= log.log_end_offset:
                break
            own = log.end_offset_for_epoch(known_epoch)[1]
            self._truncate(min(end, own, log.log_end_offset) if min(end, own) >= 0 else log.log_start_offset)
        if log.log_end_offset < leader.log_start_offset or not log.epochs.entries:
            self._shortened(log.shortening.start_afresh, leader.log_start_offset)

    def _truncate(self, offset: int) -> None:
        self._shortened(self.log.shortening.start_truncation, offset)

    def _shortened(self, start: Callable[[int, int], Truncation | None], offset: int) -> None:
        self.log.flusher.flush()
        truncation = start(offset, NOW)
        if truncation is not None:
            self.promised = min(self.promised, truncation.recovery_point)
            self.checkpoint()
            truncation.run()
            for deletion in truncation.finish():
                deletion.run()
        end = self.log.log_end_offset
        self.log.replicated_to(end)
        self.sent = {base: batch for base, batch in self.sent.items() if base < end}

    def flush(self) -> None:
        """Force it to the disk, and write how far."""
        end = self.log.log_end_offset
        self.log.flusher.flush()
        self.checkpoint()
        self.promised = end

    def checkpoint(self) -> None:
        """Write recovery point, log start offset and high watermark."""
        self.folder.start_checkpoint({KEY: self.log.log_end_offset})()

    def restart(self, *, clean: bool) -> None:
        """Stop, or be killed, and start again."""
        if clean:
            self.folder.close({KEY: self.log.log_end_offset})
        else:
            self.let_go()
        self._reopen()

    def lose_power(self, path: Path) -> None:
        """Go on with what a power loss leaves in `path`."""
        self.let_go()
        self.disk.after_power_loss(path)
        self.path, self.disk = path, PowerLossDisk(path, self.rng)
        self._reopen()

    def _reopen(self) -> None:
        self.folder = self._opened()
        self.log = self.folder.logs[KEY]
        end = self.log.log_end_offset
        self.log.replicated_to(end)
        self.sent = {base: batch for base, batch in self.sent.items() if base < end}

    def let_go(self) -> None:
        """End as a killed process does."""
        let_go(self.folder)

    # What has to hold

    def check_bytes(self) -> None:
        """Check that the log holds what was sent, byte for byte and in order."""
        batches: dict[int, bytes] = {}
        for chunk in self.log.reader.batches(self.log.log_start_offset):
            for position, header in iter_batches(chunk):
                batches[header.base_offset] = bytes(chunk[position : position + header.size])
        end = self.log.log_end_offset
        first = min(batches, default=end)
        assert list(batches.items()) == [item for item in self.sent.items() if first <= item[0] < end]

    def check_answers(self) -> None:
        """Check that each offset's read finds its batch, and that the log knows the batch's leader epoch."""
        log = self.log
        bases = sorted(base for base in self.sent if base < log.log_end_offset)
        for offset in range(log.log_start_offset, log.log_end_offset):
            piece = log.reader.read(offset, 1)
            assert piece is not None
            (_, header), *_ = iter_batches(read_slice(piece))
            last = [base for base in bases if base <= offset]
            after = [base for base in bases if base > offset]
            assert header.base_offset in (last[-1:] + after[:1]) and header.last_offset >= offset
            first = max(header.base_offset, log.log_start_offset)
            assert log.epoch_of(offset) <= header.partition_leader_epoch == log.epoch_of(first)
