"""Putting a cleaned segment in the place of those it was made of.

The steps, and what a crash makes of them, are told in the package's docstring.
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
    offset_name,
    parse_offset,
)
from logd.storage.scan import scan_headers
from logd.storage.segment import Segment
from logd.storage.segments import Segments

logger = logging.getLogger(__name__)


class Swap:
    """One group's. `prepare` in a thread, then `apply` by the log's owner if `is_possible`, then `sync_names`
    in a thread; else `discard` in a thread.
    """

    def __init__(
        self, disk: Disk, health: Health, segments: Segments, old: list[tuple[Segment, int]], cleaned: Cleaned
    ) -> None:
        self._disk = disk
        self._health = health
        self._segments = segments
        self._old = old
        self._cleaned = cleaned
        self._folder = old[0][0].folder

    @property
    def is_possible(self) -> bool:
        """Whether the old segments are in the log still, as they were when cleaning began."""
        row, old = self._segments.row, self._old
        first = self._segments.index_of(self._cleaned.base_offset)
        found = row[first : first + len(old)]
        return len(found) == len(old) and all(
            segment is there and segment.size == size and segment is not self._segments.active
            for (segment, size), there in zip(old, found, strict=True)
        )

    @property
    def is_gone(self) -> bool:
        """Whether the log begins behind the old segments by now: there is nothing left to exchange."""
        return self._old[-1][0].base_offset < self._segments.row[0].base_offset

    def prepare(self) -> bool:
        """Say on the disk that the cleaned files are whole. Blocks. False if they are gone, with their log.

        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        try:
            for suffix in self._cleaned.suffixes:
                self._disk.rename(self._path(suffix, CLEANED_SUFFIX), self._path(suffix, SWAP_SUFFIX))
            self._disk.sync_folder(self._folder)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._health.fail(f"swapping in {self._folder.name}", error) from error
        return True

    def apply(self) -> list[Path]:
        """Exchange the segments; returns the old ones' files, renamed, to be unlinked. May raise OSError."""
        first = self._segments.index_of(self._cleaned.base_offset)
        paths = [path for segment, _ in self._old for path in segment.mark_deleted()]
        for suffix in self._cleaned.suffixes:
            self._disk.rename(self._path(suffix, SWAP_SUFFIX), self._path(suffix))
        cleaned = self._cleaned
        new = Segment(self._disk, self._folder, cleaned.base_offset, cleaned.size, cleaned.modified_ms)
        self._segments.row[first : first + len(self._old)] = [new]
        return paths

    def sync_names(self) -> None:
        """Wait until the new names are on the disk. Blocks. Raises KafkaError(KAFKA_STORAGE_ERROR)."""
        try:
            self._disk.sync_folder(self._folder)
        except FileNotFoundError:
            logger.debug("log %s went away while it was compacted", self._folder.name)
        except OSError as error:
            raise self._health.fail(f"swapping in {self._folder.name}", error) from error

    def discard(self) -> None:
        """The old segments are not what they were: remove the cleaned files. Blocks."""
        try:
            # While there is a .cleaned, nobody believes the .swap files.
            self._disk.rename(self._path(LOG_SUFFIX, SWAP_SUFFIX), self._path(LOG_SUFFIX, CLEANED_SUFFIX))
        except OSError:
            logger.debug("nothing of %s was prepared", self._path(LOG_SUFFIX))
        try:
            for suffix in self._cleaned.suffixes[1:]:
                self._disk.unlink(self._path(suffix, SWAP_SUFFIX))
            for suffix in self._cleaned.suffixes[::-1]:
                self._disk.unlink(self._path(suffix, CLEANED_SUFFIX))
        except OSError as error:
            logger.warning("cannot remove what was cleaned of %s: %s", self._folder.name, error)

    def _path(self, suffix: str, stage: str = "") -> Path:
        return self._folder / (offset_name(self._cleaned.base_offset, suffix) + stage)


def finish_swaps(disk: Disk, folder: Path, names: Iterable[str]) -> None:
    """Bring what a crash left of swaps, among the files `names` of a log's folder, to one end or the other.

    May raise OSError.
    """
    swapped, cleaned = _staged(names, SWAP_SUFFIX), _staged(names, CLEANED_SUFFIX)
    for base in sorted({*swapped, *cleaned}):
        name = f"{folder.name}/{offset_name(base, LOG_SUFFIX)}"
        if base in cleaned:
            for suffix in swapped.get(base, ()):
                disk.unlink(folder / (offset_name(base, suffix) + SWAP_SUFFIX))
            for suffix in cleaned[base]:
                disk.unlink(folder / (offset_name(base, suffix) + CLEANED_SUFFIX))
            logger.info("%s: its compaction was not finished and is thrown away", name)
            continue
        if LOG_SUFFIX in swapped[base]:
            _remove_replaced(disk, folder, base, names)
        for suffix in swapped[base]:
            path = folder / offset_name(base, suffix)
            disk.rename(path.with_name(path.name + SWAP_SUFFIX), path)
        logger.info("%s: compacted, its exchange is finished now", name)


def _staged(names: Iterable[str], stage: str) -> dict[int, list[str]]:
    """Base offset: suffixes of the files at this stage of a swap, the `.log` first."""
    found: dict[int, list[str]] = {}
    for suffix in SEGMENT_SUFFIXES:
        for name in names:
            if (base := parse_offset(name, suffix + stage)) is not None:
                found.setdefault(base, []).append(suffix)
    return found


def _remove_replaced(disk: Disk, folder: Path, base: int, names: Iterable[str]) -> None:
    """Remove the segments that the swapped one stands for: their offsets are among its own."""
    file = disk.open(folder / (offset_name(base, LOG_SUFFIX) + SWAP_SUFFIX), create=False)
    end = base + 1
    for _, header in scan_headers(file, 0, file.size()):
        end = header.next_offset
    file.close()
    for suffix in SEGMENT_SUFFIXES:
        for name in names:
            found = parse_offset(name, suffix)
            if found is not None and base <= found < end:
                disk.unlink(folder / name)
