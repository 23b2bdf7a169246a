"""Opening one log: what its directory holds, recovery after an unclean stop, the pieces put together."""

from __future__ import annotations

import logging
import os
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kafka_client.errors import CorruptRecordBatch
from logd.config.topic import TopicConfig
from logd.storage.checkpoints import read_partition_metadata
from logd.storage.cleaner.swap import finish_swaps
from logd.storage.disk import Disk
from logd.storage.health import Health
from logd.storage.log.epochs import LeaderEpochs
from logd.storage.log.log import Log
from logd.storage.log.recovery import recover_producers, recover_segment
from logd.storage.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LEADER_EPOCHS,
    LOG_SUFFIX,
    PARTITION_METADATA,
    REMOVAL_OFFSET,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TEMPORARY_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRUNCATION,
    TXN_INDEX_SUFFIX,
    log_fields,
    offset_name,
    parse_offset,
)
from logd.storage.new_log import Placement
from logd.storage.producers.snapshots import Snapshots
from logd.storage.producers.state import ProducerState
from logd.storage.removals import Removals
from logd.storage.segment import Segment
from logd.storage.segments import Segments

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class LogListing:
    """The files in a log's directory. `indexed` counts the indexes of a base offset: both are needed.

    `aborted` are the base offsets with a transaction index, which not every segment has. `is_staged`: a
    compaction was not finished. `is_cut`: a truncation was not. `has_removals`: there is a removal offset.
    """

    logs: dict[int, tuple[int, int]] = field(
        default_factory=dict
    )  # base offset: bytes, modification time (ms)
    indexed: dict[int, int] = field(default_factory=dict)
    snapshots: list[int] = field(default_factory=list)
    aborted: set[int] = field(default_factory=set)
    strays: list[Path] = field(default_factory=list)
    is_staged: bool = False
    is_cut: bool = False
    has_removals: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The information that the directory has of a log before it is opened; -1 if a checkpoint lacks the log.

    Below `compacted_to` a segment may end before the next one begins, since compaction removed its last
    batches. `cleaner_offset` is from the cleaner's checkpoint.
    """

    clean: bool
    recovery_point: int
    log_start_offset: int
    compacted_to: int = -1
    cleaner_offset: int = -1


class Opened(NamedTuple):
    """A log, the files in its directory to be deleted, and whether it may lack records it once had."""

    log: Log
    strays: list[Path]
    has_lost: bool


def find_files(directory: Path, disk: Disk) -> LogListing:
    """List a log's directory, after finishing a compaction in it that a crash interrupted."""
    files = _list(directory)
    if files.is_staged:
        finish_swaps(disk, directory, os.listdir(directory))
        files = _list(directory)
    # A flush that was under way when its segment was deleted may have made such files.
    for base in {*files.indexed, *files.aborted} - set(files.logs):
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX):
            disk.unlink(directory / offset_name(base, suffix))
    return files


def _list(directory: Path) -> LogListing:
    files = LogListing()
    with os.scandir(directory) as entries:
        for entry in entries:
            name = entry.name
            if (base := parse_offset(name, LOG_SUFFIX)) is not None:
                status = entry.stat()
                files.logs[base] = (status.st_size, status.st_mtime_ns // 1_000_000)
            elif (base := parse_offset(name, INDEX_SUFFIX)) is not None or (
                base := parse_offset(name, TIME_INDEX_SUFFIX)
            ) is not None:
                files.indexed[base] = files.indexed.get(base, 0) + 1
            elif (base := parse_offset(name, SNAPSHOT_SUFFIX)) is not None:
                files.snapshots.append(base)
            elif (base := parse_offset(name, TXN_INDEX_SUFFIX)) is not None:
                files.aborted.add(base)
            elif name.endswith((CLEANED_SUFFIX, SWAP_SUFFIX)):
                files.is_staged = True
            elif name == TRUNCATION:
                files.is_cut = True
            elif name == REMOVAL_OFFSET:
                files.has_removals = True
            elif name.endswith((DELETED_SUFFIX, TEMPORARY_SUFFIX)):
                files.strays.append(directory / name)
    return files


def open_log(
    directory: Path,
    topic: str,
    partition: int,
    config: TopicConfig,
    opening: Opening,
    *,
    disk: Disk,
    health: Health,
    now_ms: int,
) -> Opened:
    """Open the log in `directory`, an empty one if there is none. One that `has_lost` has to begin a new
    leader epoch before it serves. May raise OSError.
    """
    files = find_files(directory, disk)
    for base in files.aborted - files.logs.keys():
        # Of a segment that was being deleted: a later one of this name must not take it for its own.
        disk.unlink(directory / offset_name(base, TXN_INDEX_SUFFIX))
    epochs = LeaderEpochs.read(directory / LEADER_EPOCHS)
    row = [Segment(disk, directory, base, *facts) for base, facts in sorted(files.logs.items())]
    recovery_point = opening.recovery_point if opening.clean else max(opening.recovery_point, 0)
    strays = files.strays + _recover(row, files, opening, recovery_point, config, epochs)
    if not row:
        row.append(Segment.create(disk, directory, max(opening.log_start_offset, 0), now_ms))
    end = _end_offset(row[-1], config, epochs)
    # After a clean stop the recovery point is where the log ended.
    has_lost = not opening.clean or end < max(opening.recovery_point, opening.log_start_offset)
    has_lost = has_lost or epochs.begin_after(end)
    if opening.log_start_offset > end:
        strays += _emptied(row, end, opening.log_start_offset)
        end = opening.log_start_offset
        row = [Segment.create(disk, directory, end, now_ms)]
    start = max(opening.log_start_offset, row[0].base_offset)
    epochs.truncate_from_end(end + 1)  # one that has begun at the end stays
    epochs.truncate_from_start(start)
    row[-1].expect_appends()
    if files.is_cut:
        _finish_cut(row[-1], directory, disk)
    if not any(segment.size for segment in row):
        files.snapshots = _without_earlier(files.snapshots, end, directory, disk)
    segments, snapshots = Segments(disk, directory, row), Snapshots(disk, directory, files.snapshots)
    recovery_point = end if opening.clean else min(recovery_point, end)
    log = Log(
        topic=topic,
        partition=partition,
        directory=directory,
        config=config,
        disk=disk,
        health=health,
        segments=segments,
        snapshots=snapshots,
        producers=recover_producers(
            segments, snapshots, end, now_ms, recovery_point=recovery_point, aborted=files.aborted
        ),
        epochs=epochs,
        log_start_offset=start,
        log_end_offset=end,
        recovery_point=recovery_point,
        topic_id=read_partition_metadata(directory / PARTITION_METADATA),
        removals=_removals(directory, files, opening, end),
    )
    log.release()  # opened to look at; opened again when somebody writes or reads
    return Opened(log, strays, has_lost)


def _emptied(row: list[Segment], end: int, start: int) -> list[Path]:
    """Take all segments of a log out that ends before its start. Return the paths to delete."""
    directory = row[0].directory
    logger.warning(
        "%s ends at %d before its start %d: emptied", directory, end, start, extra=log_fields(directory)
    )
    return [path for segment in row for path in segment.mark_deleted()]


def _finish_cut(active: Segment, directory: Path, disk: Disk) -> None:
    """Have a truncation on the disk.

    After a power loss what was cut must not be found behind what is written from now on.
    """
    active.file.sync()
    disk.sync_folder(directory)
    disk.unlink(directory / TRUNCATION)


def _removals(directory: Path, files: LogListing, opening: Opening, end: int) -> Removals:
    """Return the log's removals by compaction. For a log that was never compacted, nothing is read."""
    if not files.has_removals and opening.compacted_to < 0:
        return Removals()
    compacted_to = opening.cleaner_offset if files.has_removals else opening.compacted_to
    return Removals.read(directory, compacted_to, end)


def _without_earlier(snapshots: list[int], start: int, directory: Path, disk: Disk) -> list[int]:
    """Remove snapshots before `start`, where the records behind them are gone.

    Nobody would end the transactions that they know as open.
    """
    for offset in snapshots:
        if offset < start:
            disk.unlink(directory / offset_name(offset, SNAPSHOT_SUFFIX))
    return [offset for offset in snapshots if offset >= start]


def new_log(
    directory: Path,
    topic: str,
    partition: int,
    config: TopicConfig,
    *,
    topic_id: bytes | None,
    disk: Disk,
    health: Health,
    now_ms: int,
) -> Log:
    """Return an empty log that is to be in `directory`; nothing is on the disk yet (`Log.place`)."""
    log = Log(
        topic=topic,
        partition=partition,
        directory=directory,
        config=config,
        disk=disk,
        health=health,
        segments=Segments(disk, directory, [Segment(disk, directory, 0, 0, now_ms)]),
        snapshots=Snapshots(disk, directory, []),
        producers=ProducerState(),
        epochs=LeaderEpochs(),
        log_start_offset=0,
        log_end_offset=0,
        recovery_point=0,
        topic_id=topic_id,
    )
    log.begin_in_memory(Placement(disk, directory, topic_id))
    return log


def _recover(
    row: list[Segment],
    files: LogListing,
    opening: Opening,
    recovery_point: int,
    config: TopicConfig,
    epochs: LeaderEpochs,
) -> list[Path]:
    """Scan the segments that may be damaged or have no indexes.

    Return files after the new end, which have been renamed away.
    """
    scanned = 0
    strays: list[Path] = []
    bases = [segment.base_offset for segment in row]
    unflushed = len(row) if opening.clean else max(bisect_right(bases, recovery_point) - 1, 0)
    for index, segment in enumerate(row):
        missing = segment.size > 0 and files.indexed.get(segment.base_offset, 0) < 2
        if index < unflushed and not missing:
            if index == unflushed - 1 and not opening.clean and bases[unflushed] == recovery_point:
                segment.finish_again()  # the flush may have been before the next one was begun
            continue
        if missing:
            logger.warning(
                "%s: an index is missing, building it again",
                segment.file_name,
                extra=log_fields(segment.directory),
            )
        start = -1 if missing else recovery_point
        recovered = recover_segment(segment, config.index_interval_bytes, epochs, recovery_point=start)
        scanned += recovered.scanned
        _save_indexes(segment, sync=index < unflushed)
        due = row[index + 1].base_offset if index + 1 < len(row) else recovered.end_offset
        # A power loss may take the end of a segment that a later one follows. What compaction took away looks
        # the same; ours only stands below the recovery point, Apache Kafka writes that down a minute later.
        is_short = recovered.end_offset != due > opening.compacted_to
        if recovered.lost or (index >= unflushed and is_short):
            strays = [path for later in row[index + 1 :] for path in later.mark_deleted()]
            del row[index + 1 :]
            break
    if scanned and not opening.clean:
        directory = row[0].directory
        logger.info(
            "%s: recovered from offset %d on, %d bytes checked",
            directory.name,
            recovery_point,
            scanned,
            extra=log_fields(directory),
        )
    return strays


def _end_offset(active: Segment, config: TopicConfig, epochs: LeaderEpochs) -> int:
    """Return where the log ends; an index that does not fit its log is rebuilt."""
    try:
        if 0 <= active.index.last_position() <= active.size:
            return active.next_offset()
    except CorruptRecordBatch as error:
        logger.warning("%s: %s", active.file_name, error, extra=log_fields(active.directory))
    recover_segment(active, config.index_interval_bytes, epochs)
    _save_indexes(active, sync=True)
    return active.next_offset()


def _save_indexes(segment: Segment, *, sync: bool) -> None:
    """Write rebuilt indexes. Set `sync` below the recovery point, where no later flush syncs them."""
    files = segment.save()
    if sync:
        for file in files:
            file.sync()
    else:
        segment.not_synced()
    segment.unload()
