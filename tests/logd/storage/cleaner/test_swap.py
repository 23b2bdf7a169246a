"""A crash at any step of a swap leaves the old records or the new ones.

The story: an early cleaner renamed its files over the old ones and only then removed the segments they had
swallowed. Killed in between, the log began with offsets 0…99 and went on with 40…99 once more.
"""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_client.errors import KafkaError
from logd.storage.disk import File, PosixDisk
from tests.support.depth import deep

STEPS_MAX = 400


class Crash(BaseException):
    """The process ends here."""


class CrashingDisk(PosixDisk):
    """Ends the process, or fails, instead of its n-th operation on names or folders."""

    def __init__(self) -> None:
        self.left = -1
        self.error: BaseException = Crash()

    def step(self) -> None:
        if self.left == 0:
            raise self.error
        self.left -= 1

    def open(self, path: Path, *, create: bool = True) -> File:
        if path.suffix in (".cleaned", ".swap"):
            self.step()
        return super().open(path, create=create)

    def rename(self, source: Path, target: Path) -> None:
        self.step()
        super().rename(source, target)

    def unlink(self, path: Path) -> None:
        self.step()
        super().unlink(path)

    def sync_folder(self, path: Path) -> None:
        self.step()
        super().sync_folder(path)


def filled(keyed: Any) -> None:
    """Fill the log with two groups of segments, aborted records among them. Nothing remains of the first
    group's last segments.
    """
    keyed.configure(segment_bytes=900)
    for number in range(4):
        keyed.append(*((f"k{index}", f"{number}" * 20) for index in range(4)))
        keyed.append((f"own {number}", "x" * 300))
        if number % 2:
            facts = {"producer_id": number, "producer_epoch": 0}
            keyed.append(("k0", "lost"), base_sequence=0, transactional=True, **facts)
            keyed.log.writer.append_marker(
                commit=False, coordinator_epoch=0, leader_epoch=0, now_ms=keyed.now, **facts
            )
        keyed.roll()
        for _ in range(3 if number == 1 else 0):
            keyed.append(("k0", "overwritten"))
            keyed.roll()


@pytest.fixture
def template(tmp_path: Path, make_keyed: Callable[[Path], Any]) -> Path:
    """A folder with such a log, to be copied."""
    keyed = make_keyed(tmp_path / "template")
    keyed.open()
    filled(keyed)
    keyed.reopen(clean=True)
    keyed.kill()
    return tmp_path / "template"


def copied(template: Path, make_keyed: Callable[[Path], Any], name: str) -> Any:
    """Return a log over a copy of the template, not opened yet, on a disk that can be made to crash."""
    keyed = make_keyed(template.with_name(name))
    shutil.copytree(template, keyed.path)
    keyed.configure(segment_bytes=900)
    keyed.disk = CrashingDisk()
    return keyed


def values(keyed: Any) -> dict[str, str]:
    """Return the last value of each key that a reader of committed records sees. Check
    that offsets ascend.
    """
    offsets = [offset for offset, *_ in keyed.records()]
    assert offsets == sorted(set(offsets)), "offsets repeat"
    aborted = keyed.log.reader.aborted(0, keyed.log.log_end_offset)
    latest = {}
    for header, records in keyed.batches():
        is_lost = header.is_transactional and any(
            entry.producer_id == header.producer_id
            and entry.first_offset <= header.base_offset <= entry.last_offset
            for entry in aborted
        )
        if not header.is_control and not is_lost:
            latest.update({key: value for _, _, key, value, _ in records})
    return latest


@deep
@pytest.mark.parametrize("error", [Crash(), OSError(errno.EIO, "no")], ids=["crash", "error"])
def test_every_step(template: Path, make_keyed: Callable[[Path], Any], error: BaseException) -> None:
    for step in range(STEPS_MAX):
        keyed = copied(template, make_keyed, str(step))
        disk = keyed.disk
        keyed.open()
        expected, sizes = values(keyed), keyed.log.size
        disk.left, disk.error = step, error
        is_through = False
        try:
            keyed.compact()
            is_through = True
        except (Crash, OSError, KafkaError):
            pass
        disk.left = -1
        keyed.reopen()
        try:
            assert values(keyed) == expected, f"step {step}"
            assert values(keyed)[b"k0"] == b"3" * 20
            assert not keyed.staged()
            assert keyed.log.size <= sizes
            keyed.first_dirty = -1
            keyed.compact_all()
            assert values(keyed) == expected
            keyed.append(("later", "1"))
            assert keyed.records()[-1][1] == "later"
        finally:
            keyed.kill()
        if is_through:
            assert step > 20
            return
    raise AssertionError("the swap never came to its end")


@deep
def test_a_crash_while_the_loader_finishes_a_swap(template: Path, make_keyed: Callable[[Path], Any]) -> None:
    """Stopped in the midst of the swap, and once more in the midst of the start that brings it to its end."""
    keyed = copied(template, make_keyed, "counted")
    steps = _stop_swap_at(keyed, STEPS_MAX)
    keyed.kill()
    assert steps > 10
    for swap_step in range(0, steps, 4):
        for load_step in range(STEPS_MAX):
            keyed = copied(template, make_keyed, f"{swap_step}-{load_step}")
            _stop_swap_at(keyed, swap_step)
            expected = {f"k{index}".encode(): b"3" * 20 for index in range(4)}
            keyed.kill()
            keyed.disk.left = load_step
            is_through = True
            try:
                keyed.open()
            except Crash:
                is_through = False
            keyed.disk.left = -1
            if not is_through:
                keyed.open()
            latest = values(keyed)
            assert {key: latest[key] for key in expected} == expected, f"steps {swap_step}, {load_step}"
            keyed.kill()
            if is_through:
                break


def _stop_swap_at(keyed: Any, step: int) -> int:
    """Stop at this step of the exchange itself; how many steps were taken."""
    keyed.open()
    groups, _, compaction = keyed.round()
    swap = keyed.log.compaction.start_swap(compaction, groups[0])
    assert swap.prepare()
    disk = keyed.disk
    disk.left = step
    with contextlib.suppress(Crash):
        keyed.log.compaction.finish_swap(swap)
    return step - disk.left


def test_segments_a_crash_left_of_which_nothing_stayed(keyed: Any) -> None:
    """Superseded segments that a crash brings back do no harm. The last batch of a swapped segment says which
    segments it replaces; later ones come back, and the next round removes them.
    """
    filled(keyed)
    expected = values(keyed)
    groups, _, compaction = keyed.round()
    swap = keyed.log.compaction.start_swap(compaction, groups[0])
    assert swap.prepare()
    keyed.reopen()
    left = [base for base in groups[0].replaced[1:] if base in keyed.bases()]
    assert left == groups[0].replaced[-3:]
    assert values(keyed) == expected
    keyed.log.flusher.flush()
    keyed.first_dirty = -1
    keyed.compact_all()
    assert not set(left) & set(keyed.bases())
    assert values(keyed) == expected


def test_what_the_java_broker_leaves_is_understood(keyed: Any) -> None:
    """Complete sets of .swap files are put in place, incomplete ones are dropped. The Java broker renames in
    the same order.
    """
    filled(keyed)
    expected = values(keyed)
    groups, _, compaction = keyed.round()
    keyed.log.compaction.start_swap(compaction, groups[0]).prepare()
    assert any(name.endswith(".log.swap") for name in keyed.staged())
    assert any(name.endswith(".cleaned") for name in keyed.staged()), "the other group's"
    bases = keyed.bases()
    keyed.reopen()
    assert not keyed.staged()
    assert keyed.bases() != bases
    assert values(keyed) == expected
