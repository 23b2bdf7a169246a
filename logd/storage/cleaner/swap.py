"""The replacement of segments by the cleaned segment that was made of them.

The package's docstring describes the steps, and recovery after a crash in each of them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from logd.storage.cleaner.messages import Cleaned
from logd.storage.disk import Disk
from logd.storage.health import Health
from logd.storage.names import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    log_fields,
    offset_name,
    parse_offset,
)
from logd.storage.scan import scan_headers
from logd.storage.segment import Segment
from logd.storage.segments import Segments

logger = logging.getLogger(__name__)


class Swap:
    """The swap of one group of segments.

    Call `prepare` in a thread. If `is_possible` then, the log's owner calls `apply`, and `sync_names` follows
    in a thread. Otherwise call `discard` in a thread.
    """

    def __init__(
        self, disk: Disk, health: Health, segments: Segments, old: list[tuple[Segment, int]], cleaned: Cleaned
    ) -> None:
        self._disk = disk
        self._health = health
        self._segments = segments
        self._old = old
        self._cleaned = cleaned
        self._directory = old[0][0].directory

    @property
    def is_possible(self) -> bool:
        """True if the old segments are still in the log, unchanged since cleaning started."""
        row, old = self._segments.row, self._old
        first = self._segments.index_of(self._cleaned.base_offset)
        current = row[first : first + len(old)]
        return len(current) == len(old) and all(
            segment is there and segment.size == size and segment is not self._segments.active
            for (segment, size), there in zip(old, current, strict=True)
        )

    @property
    def is_gone(self) -> bool:
        """True if the log now starts after the old segments, so that nothing is left to replace."""
        return self._old[-1][0].base_offset < self._segments.row[0].base_offset

    def prepare(self) -> bool:
        """Rename the cleaned files to say that they are whole. Blocks. Returns False if they were deleted
        with their log.

        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        try:
            for suffix in self._cleaned.suffixes:
                self._disk.rename(self._path(suffix, CLEANED_SUFFIX), self._path(suffix, SWAP_SUFFIX))
            self._disk.sync_folder(self._directory)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._health.fail(f"swapping in {self._directory.name}", error) from error
        return True

    def apply(self) -> list[Path]:
        """Replace the segments; return the renamed files of the old ones, to be unlinked. May raise
        OSError.
        """
        first = self._segments.index_of(self._cleaned.base_offset)
        paths = [path for segment, _ in self._old for path in segment.mark_deleted()]
        for suffix in self._cleaned.suffixes:
            self._disk.rename(self._path(suffix, SWAP_SUFFIX), self._path(suffix))
        cleaned = self._cleaned
        new = Segment(self._disk, self._directory, cleaned.base_offset, cleaned.size, cleaned.modified_ms)
        self._segments.row[first : first + len(self._old)] = [new]
        return paths

    def sync_names(self) -> None:
        """Wait until the new names are on the disk. Blocks. Raises KafkaError(KAFKA_STORAGE_ERROR)."""
        try:
            self._disk.sync_folder(self._directory)
        except FileNotFoundError:
            logger.debug("log %s went away while it was compacted", self._directory.name)
        except OSError as error:
            raise self._health.fail(f"swapping in {self._directory.name}", error) from error

    def discard(self) -> None:
        """Remove the cleaned files, since the old segments have changed. Blocks."""
        try:
            # While there is a .cleaned file, recovery ignores the .swap files.
            self._disk.rename(self._path(LOG_SUFFIX, SWAP_SUFFIX), self._path(LOG_SUFFIX, CLEANED_SUFFIX))
        except OSError:
            logger.debug("nothing of %s was prepared", self._path(LOG_SUFFIX))
        try:
            for suffix in self._cleaned.suffixes[1:]:
                self._disk.unlink(self._path(suffix, SWAP_SUFFIX))
            for suffix in self._cleaned.suffixes[::-1]:
                self._disk.unlink(self._path(suffix, CLEANED_SUFFIX))
        except OSError as error:
            logger.warning(
                "cannot remove what was cleaned of %s: %s",
                self._directory.name,
                error,
                extra=log_fields(self._directory),
            )

    def _path(self, suffix: str, stage: str = "") -> Path:
        return self._directory / (offset_name(self._cleaned.base_offset, suffix) + stage)


def finish_swaps(disk: Disk, directory: Path, names: Iterable[str]) -> None:
    """Complete or undo the swaps that a crash interrupted, from the files `names` of a log's directory.

    May raise OSError.
    """
    swapped, cleaned = _staged(names, SWAP_SUFFIX), _staged(names, CLEANED_SUFFIX)
    for base in sorted({*swapped, *cleaned}):
        name = f"{directory.name}/{offset_name(base, LOG_SUFFIX)}"
        if base in cleaned:
            for suffix in swapped.get(base, ()):
                disk.unlink(directory / (offset_name(base, suffix) + SWAP_SUFFIX))
            for suffix in cleaned[base]:
                disk.unlink(directory / (offset_name(base, suffix) + CLEANED_SUFFIX))
            logger.info(
                "%s: its compaction was not finished and is thrown away", name, extra=log_fields(directory)
            )
            continue
        if LOG_SUFFIX in swapped[base]:
            _remove_replaced(disk, directory, base, names)
        for suffix in swapped[base]:
            path = directory / offset_name(base, suffix)
            disk.rename(path.with_name(path.name + SWAP_SUFFIX), path)
        logger.info("%s: compacted, its exchange is finished now", name, extra=log_fields(directory))


def _staged(names: Iterable[str], stage: str) -> dict[int, list[str]]:
    """Return base offset → suffixes of the files at this stage of a swap, the `.log` first."""
    staged: dict[int, list[str]] = {}
    for suffix in SEGMENT_SUFFIXES:
        for name in names:
            if (base := parse_offset(name, suffix + stage)) is not None:
                staged.setdefault(base, []).append(suffix)

    return staged


def _remove_replaced(disk: Disk, directory: Path, base: int, names: Iterable[str]) -> None:
    """Remove the segments that the swapped one replaces: their base offsets are within its offsets."""
    file = disk.open(directory / (offset_name(base, LOG_SUFFIX) + SWAP_SUFFIX), create=False)
    end = base + 1
    for _, header in scan_headers(file, 0, file.size()):
        end = header.next_offset
    file.close()
    for suffix in SEGMENT_SUFFIXES:
        for name in names:
            offset = parse_offset(name, suffix)
            if offset is not None and base <= offset < end:
                disk.unlink(directory / name)
