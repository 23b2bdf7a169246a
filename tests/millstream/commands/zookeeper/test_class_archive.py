"""Servers of ZooKeeper that start with the classes of those before them."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.zookeeper import class_archive, server
from millstream.zookeeper.class_archive import ClassArchive
from millstream.zookeeper.ensemble import Ensemble
from tests.support.depth import deep

USED, WRITTEN = "-XX:SharedArchiveFile=", "-XX:ArchiveClassesAtExit="


@pytest.fixture
def archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "archives"
    monkeypatch.setenv(class_archive.FOLDER, str(folder))
    # Java writes the archive before it ends; a server that is killed for being slow leaves none.
    monkeypatch.setattr(server, "STOP_SECONDS", 100.0)
    return folder


def options_of(folder: Path, *, kill: bool = False) -> str:
    """Run a server; with what options it ran."""
    with Ensemble(folder) as ensemble:
        (process,) = ensemble.servers
        options = Path(f"/proc/{process.pid}/cmdline").read_text().replace("\0", " ")
        if kill:
            process.kill()
    assert not list(folder.rglob("*.jsa"))
    return options


@deep
def test_one_that_ends_orderly_leaves_its_classes_to_the_next(archives: Path, tmp_path: Path) -> None:
    assert WRITTEN in options_of(tmp_path / "killed", kill=True)
    assert not archives.exists()
    assert WRITTEN in options_of(tmp_path / "first")
    (archive,) = archives.iterdir()
    assert f"{USED}{archive}" in options_of(tmp_path / "second")
    assert list(archives.iterdir()) == [archive]


@deep
def test_an_archive_of_no_use_keeps_no_server_from_starting(archives: Path, tmp_path: Path) -> None:
    assert WRITTEN in options_of(tmp_path / "first")
    (archive,) = archives.iterdir()
    archive.write_bytes(b"rubbish")
    assert USED in options_of(tmp_path / "second")


def test_other_jars_are_another_archive(archives: Path, tmp_path: Path) -> None:
    (tmp_path / "a.jar").write_bytes(b"1")
    paths = [ClassArchive("a", f"{tmp_path}/*").path]
    (tmp_path / "b.jar").write_bytes(b"1")
    paths.append(ClassArchive("a", f"{tmp_path}/*").path)
    (tmp_path / "b.jar").write_bytes(b"12")
    paths.append(ClassArchive("a", f"{tmp_path}/*").path)
    assert len(set(paths)) == 3
    assert ClassArchive("a", f"{tmp_path}/*").path == paths[-1]


def test_there_is_none_where_it_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(class_archive.FOLDER, "")
    assert ClassArchive("a", "a.jar").use_or_write(tmp_path / "draft") == ()
    (tmp_path / "file").touch()
    monkeypatch.setenv(class_archive.FOLDER, str(tmp_path / "file"))
    archive, draft = ClassArchive("a", "a.jar"), tmp_path / "draft"
    draft.touch()
    archive.keep(draft)
    assert not draft.exists()
    assert archive.is_missing


def test_it_is_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(class_archive.FOLDER)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = ClassArchive("zookeeper", "a.jar").path
    assert path is not None
    assert path.parent == tmp_path / "millstream"
