"""The files source while files grow: links, long lines, bytes of any kind, files that come and go."""

import os

import pytest

from connect.api import ConnectError
from plugins.files import FilesSource, decompressed


def config(path, **more):
    base = {"files": str(path), "topic": "t", "watch.interval.ms": "0", "format": "text"}
    return base | {k.replace("_", "."): str(v) for k, v in more.items()}


def append(path, text):
    with path.open("a") as file:
        file.write(text)


def values(run):
    texts = []
    for _ in range(6):  # a rotation takes a poll to notice, and one to begin
        texts += [record.value for record in run.records()]
    return texts


def test_a_link_to_the_current_log_is_followed_when_it_points_elsewhere(start, tmp_path):
    link = tmp_path / "current"
    (tmp_path / "log-1").write_text("a\n")
    link.symlink_to("log-1")
    run = start(FilesSource, config(link))
    assert values(run) == ["a"]
    with (tmp_path / "log-1").open("a") as file:
        file.write("b\n")
    (tmp_path / "log-2").write_text("c\n")
    (tmp_path / "new").symlink_to("log-2")
    (tmp_path / "new").rename(link)
    assert values(run) == ["b", "c"]
    run.commit()
    append((tmp_path / "log-2"), "d\n")
    again = run.again()
    assert values(again) == ["d"]
    again.stop()


def test_a_link_that_points_elsewhere_while_the_worker_is_down(start, tmp_path):
    link = tmp_path / "current"
    (tmp_path / "log-1").write_text("a\n")
    link.symlink_to("log-1")
    run = start(FilesSource, config(link))
    assert values(run) == ["a"]
    run.commit()
    run.stop()
    append((tmp_path / "log-1"), "b\n")
    (tmp_path / "log-2").write_text("c\n")
    link.unlink()
    link.symlink_to("log-2")
    again = run.again()
    assert values(again) == ["b", "c"]
    again.stop()


def test_copytruncate_while_the_worker_is_down(start, tmp_path):
    path = tmp_path / "a.log"
    path.write_text("".join(f"old {n}\n" for n in range(100)))
    run = start(FilesSource, config(path))
    assert len(values(run)) == 100
    run.commit()
    run.stop()
    with path.open("r+") as file:
        file.truncate(0)
        file.write("new\n")
    again = run.again()
    assert values(again) == ["new"]
    again.stop()


def test_copytruncate_that_has_grown_beyond_what_was_read(start, tmp_path):
    path = tmp_path / "a.log"
    path.write_text("old\n" * 3)
    run = start(FilesSource, config(path))
    assert len(values(run)) == 3
    with path.open("r+") as file:
        file.truncate(0)
        file.write("new\n" * 9)
    assert values(run) == ["new"] * 9


def test_the_inode_of_a_deleted_file_given_to_another(start, tmp_path):
    path = tmp_path / "a.log"
    path.write_text("old 1\nold 2\n")
    run = start(FilesSource, config(tmp_path / "*.log"))
    assert len(values(run)) == 2
    run.commit()
    run.stop()
    with path.open("r+") as file:  # the same inode with another content, as after a delete and a create
        file.truncate(0)
        file.write("new 1\nnew 2\nnew 3\n")
    again = run.again()
    assert values(again) == ["new 1", "new 2", "new 3"]
    again.stop()


def test_a_last_line_without_its_end_waits_and_comes_whole(start, tmp_path):
    path = tmp_path / "a.log"
    path.write_text("a\nb")
    run = start(FilesSource, config(path))
    assert values(run) == ["a"]
    run.commit()
    again = run.again()
    assert values(again) == []
    append(path, "c\n")
    assert values(again) == ["bc"]
    again.stop()


def test_a_file_that_vanishes_between_the_look_and_the_read(start, tmp_path, monkeypatch):
    (tmp_path / "a.log").write_text("a\n")
    (tmp_path / "b.log").write_text("b\n")
    run = start(FilesSource, config(tmp_path / "*.log"))
    (tmp_path / "a.log").unlink()
    assert values(run) == ["b"]
    (tmp_path / "a.log").write_text("again\n")
    assert values(run) == ["again"]


@pytest.mark.parametrize("stop_at_eof", ["true", "false"])
def test_a_line_of_a_gigabyte_is_refused_and_named(start, tmp_path, monkeypatch, stop_at_eof):
    monkeypatch.setattr(decompressed, "LINE_BYTES_MAX", 2 << 20)
    path = tmp_path / "a.log"
    with path.open("wb") as file:
        file.write(b"a\n")
        file.truncate(1 << 30)
    run = start(FilesSource, config(path, stop_at_eof=stop_at_eof, batch_size=1))
    with pytest.raises(ConnectError, match=r"a\.log.*a line of more than 2 MiB"):
        values(run)


def test_bytes_of_any_kind_go_through_latin_1(start, tmp_path):
    path = tmp_path / "a.bin"
    raw = bytes(b for b in range(256) if b not in b"\r\n") + b"\n"
    path.write_bytes(raw)
    (value,) = values(start(FilesSource, config(path, encoding="latin-1")))
    assert value.encode("latin-1") == raw[:-1]


def test_a_name_that_is_no_utf8_is_read(start, tmp_path):
    name = os.fsdecode(b"caf\xe9.log")
    (tmp_path / name).write_text("a\n")
    run = start(FilesSource, config(tmp_path / "*.log"))
    assert values(run) == ["a"]
    run.commit()
    again = run.again()
    assert values(again) == []
    again.stop()
