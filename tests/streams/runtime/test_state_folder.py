"""State of tasks that have gone to other instances: it stayed on disk for ever."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

import pytest

from streams.errors import StateFolderLocked
from streams.runtime.folder import StateFolder
from streams.runtime.task_id import TaskId
from tests.streams.support.counting import application, contents, expected, make_events, prepare
from tests.streams.support.running import NewName, copy, make_topics, run
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.waiting import until

NOW = 1_700_000_000_000
DELAY = 600_000


def task_folder(folder: StateFolder, id: TaskId, used_at: int) -> Path:
    """Create the folder of a task with state in it, and return it."""
    path = folder.task(id)
    path.mkdir(parents=True)
    (path / "data").write_bytes(b"x")
    os.utime(path.parent, (used_at / 1000, used_at / 1000))
    return path.parent


def test_others_cannot_read_it(tmp_path: Path) -> None:
    """Check Kafka Streams' permissions, also of a folder that an older release has made."""
    made = tmp_path / "state" / "app"
    made.mkdir(parents=True)
    made.chmod(0o755)
    (tmp_path / "state").chmod(0o755)
    folder = StateFolder(str(tmp_path / "state"), "app")
    task = folder.made_for(TaskId(0, 1))
    assert [stat.S_IMODE(each.stat().st_mode) for each in (folder.path, task)] == [0o750, 0o750]
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o755, "other applications may have it too"
    folder.close()


def test_what_does_not_run_here_goes_after_the_delay(tmp_path: Path) -> None:
    folder = StateFolder(str(tmp_path), "app")
    running = task_folder(folder, TaskId(0, 0), NOW - 10 * DELAY)
    old = task_folder(folder, TaskId(0, 1), NOW - DELAY - 1000)
    young = task_folder(folder, TaskId(1, 0), NOW - DELAY + 1000)
    assert folder.set_aside([TaskId(0, 0)], DELAY, NOW) == [TaskId(0, 1)]
    assert folder.stored_tasks() == [TaskId(0, 0), TaskId(1, 0)], "nobody is given a task for state set aside"
    again = task_folder(folder, TaskId(0, 1), NOW)
    folder.delete_set_aside()
    assert (running.exists(), old.exists(), young.exists(), again.exists()) == (True, True, True, True)
    assert sorted(each.name for each in folder.path.iterdir()) == [".lock", "0_0", "0_1", "1_0"]
    assert folder.set_aside([TaskId(0, 0)], DELAY, NOW) == []
    folder.close()


def test_a_folder_touched_counts_as_used(tmp_path: Path) -> None:
    folder = StateFolder(str(tmp_path), "app")
    task_folder(folder, TaskId(0, 1), 0)
    folder.released(TaskId(0, 1), {})
    folder.released(TaskId(7, 7), {})
    assert folder.set_aside([], DELAY, int((folder.path / "0_1").stat().st_mtime * 1000) + 1000) == []
    assert folder.stored_tasks() == [TaskId(0, 1)]
    folder.close()


def test_offsets_are_known_while_the_task_is_closed(tmp_path: Path) -> None:
    folder = StateFolder(str(tmp_path), "app")
    task_folder(folder, TaskId(0, 1), 0)
    assert folder.offsets(TaskId(0, 1)) is None, "whoever was killed told nothing"
    folder.released(TaskId(0, 1), {"counts": 7, "totals": 3})
    assert folder.offsets(TaskId(0, 1)) == {"counts": 7, "totals": 3}
    folder.opened(TaskId(0, 1))
    assert folder.offsets(TaskId(0, 1)) is None
    folder.close()


@pytest.mark.parametrize("content", [b"", b"\xff{", b'{"counts": "seven"}', b"[7]"])
def test_offsets_that_cannot_be_read_are_not_known(tmp_path: Path, content: bytes) -> None:
    folder = StateFolder(str(tmp_path), "app")
    (task_folder(folder, TaskId(0, 1), 0) / ".offsets").write_bytes(content)
    assert folder.offsets(TaskId(0, 1)) is None
    folder.close()


def test_who_holds_the_folder_is_named_for_as_long_as_it_does(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / ".lock").write_text("12345678\n")
    folder = StateFolder(str(tmp_path), "app")
    with pytest.raises(StateFolderLocked, match=f"another process, {os.getpid()}: end that one, or give"):
        StateFolder(str(tmp_path), "app")
    folder.close()
    StateFolder(str(tmp_path), "app").close()


def test_what_an_earlier_process_set_aside_is_deleted(tmp_path: Path) -> None:
    folder = StateFolder(str(tmp_path), "app")
    task_folder(folder, TaskId(0, 1), 0)
    folder.set_aside([], DELAY, NOW)
    folder.close()
    folder = StateFolder(str(tmp_path), "app")
    folder.delete_set_aside()
    assert [each.name for each in folder.path.iterdir()] == [".lock"]
    folder.close()


def test_another_applications_folder_is_its_own(tmp_path: Path) -> None:
    """Folders of other applications lie beside it; one of the same application cannot be opened twice."""
    folder, other = StateFolder(str(tmp_path), "app"), StateFolder(str(tmp_path), "app-2")
    theirs = task_folder(other, TaskId(0, 1), 0)
    folder.set_aside([], DELAY, NOW)
    folder.delete_set_aside()
    assert theirs.exists()
    with pytest.raises(StateFolderLocked):
        StateFolder(str(tmp_path), "app-2")
    folder.close()
    other.close()


@deep
def test_a_running_application_cleans_up(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, caplog: pytest.LogCaptureFixture
) -> None:
    """Its two tasks become one and the other's folder goes; the state comes back from the changelog."""
    prefix = new_name("clean")
    events = make_events(1000)
    stores = tmp_path / "1" / f"{prefix}-app"

    def folders() -> set[str]:
        return {each.name for each in stores.iterdir() if each.name != ".lock"}

    async def case() -> None:
        await prepare(logd.bootstrap, prefix, events)
        first = application(
            logd.bootstrap, prefix, str(tmp_path / "1"), group_instance_id=None, state_cleanup_delay_ms=20
        )
        second = application(logd.bootstrap, prefix, str(tmp_path / "2"), group_instance_id=None)
        async with first:
            await first.wait_until_caught_up()
            assert folders() == {"0_0", "0_1"}
            async with second:
                await until(lambda: len(first.tasks) == len(second.tasks) == 1)
                await until(lambda: folders() == {str(id) for id in first.tasks})
            await until(lambda: len(first.tasks) == 2)
            await first.wait_until_caught_up()
            await until(lambda: folders() == {"0_0", "0_1"})
            assert contents(first)[1] == expected(events)[1]

    with caplog.at_level(logging.INFO, "streams.runtime.cleaner"):
        run(case)
    assert "deleted, it has not run here for 20 ms" in caplog.text


def test_a_cleaner_that_fails_says_so_and_goes_on(
    logd: LogdProcess,
    tmp_path: Path,
    new_name: NewName,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    name = new_name("unclean")
    original, errors = StateFolder.delete_set_aside, [OSError("busy")]

    def delete(self: StateFolder) -> None:
        if errors:
            raise errors.pop()
        original(self)

    async def case() -> None:
        await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
        left = tmp_path / name / "7_7"
        left.mkdir(parents=True)
        os.utime(left, (0, 0))
        monkeypatch.setattr(StateFolder, "delete_set_aside", delete)
        async with copy(logd.bootstrap, name, tmp_path, state_cleanup_delay_ms=5):
            await until(lambda: not any(tmp_path.glob(f"{name}/*7_7*")))

    run(case)
    assert "OSError: busy" in caplog.text
