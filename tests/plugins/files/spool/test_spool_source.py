"""The spool source: whole files of a folder, once each, whatever happens to them."""

import gzip
import logging
import os

import pytest

from connect.api import ConfigError, ConnectError
from connect.testing.conformance import SourceConformance
from plugins.files import SpoolSource
from plugins.files.spool import folder as folder_module
from tests.plugins.files.spool.conftest import reported, values


class TestConformance(SourceConformance):
    connector = SpoolSource
    blocks = False
    poll_max = 5

    def config(self, folder):
        (folder / "in").mkdir(exist_ok=True)
        return {
            "topic": "t",
            "input.path": str(folder / "in"),
            "finished.path": str(folder / "done"),
            "file.minimum.age.ms": "0",
            "watch.interval.ms": "0",
            "batch.size": "5",
        }

    def add(self, folder, numbers):
        (folder / "in").mkdir(exist_ok=True)
        for number in numbers:
            (folder / "in" / f"{number:06}.jsonl").write_text(f'{{"number": {number}}}\n')


class TestConformanceOfOneFile(TestConformance):
    poll_max = 3

    def config(self, folder):
        return {**super().config(folder), "cleanup.policy": "none", "batch.size": "3"}

    def add(self, folder, numbers):
        (folder / "in").mkdir(exist_ok=True)
        with (folder / "in" / "all.csv").open("a") as file:
            if file.tell() == 0:
                file.write("number\n")
            file.writelines(f"{number}\n" for number in numbers)


def test_files_are_read_in_order_and_moved_once_their_offsets_are_committed(spool, inbox, done):
    (inbox / "b.txt").write_text("3\n")
    (inbox / "a.txt").write_text("1\n2\n")
    run = spool()
    assert values(run.records()) == ["1", "2", "3"]
    assert sorted(p.name for p in inbox.iterdir()) == ["a.txt", "b.txt"]
    run.commit()
    assert list(inbox.iterdir()) == []
    assert sorted(p.name for p in done.iterdir()) == ["a.txt", "b.txt"]
    assert (done / "a.txt").read_text() == "1\n2\n"


def test_a_file_of_the_same_name_is_read_again_and_overwrites_nothing(spool, inbox, done):
    run = spool()
    for text in ("1", "2", "2"):
        (inbox / "daily.txt").write_text(text)
        assert values(run.records()) == [text]
        run.commit()
    assert sorted((p.name, p.read_text()) for p in done.iterdir()) == [
        ("daily.txt", "1"), ("daily.txt.1", "2"), ("daily.txt.2", "2")
    ]  # fmt: skip


def test_a_worker_killed_between_commit_and_move_puts_the_file_away_unread(spool, inbox, done, monkeypatch):
    (inbox / "a.txt").write_text("1\n")
    run = spool()
    run.records()
    with monkeypatch.context() as patch:
        patch.setattr("plugins.files.spool.source.clean_up", lambda *_: None)
        run.commit()
    again = run.again()
    assert again.records() == []
    assert [p.name for p in done.iterdir()] == ["a.txt"]
    again.stop()


@pytest.mark.parametrize("policy", ["none", "delete"])
def test_other_policies(spool, inbox, policy):
    (inbox / "a.txt").write_text("1\n")
    run = spool(cleanup_policy=policy)
    assert values(run.records()) == ["1"]
    run.commit()
    assert run.records() == []
    assert (inbox / "a.txt").exists() == (policy == "none")
    again = run.again()
    assert again.records() == []
    again.stop()


def test_a_file_that_stays_and_comes_back_from_a_backup_is_not_read_again(spool, inbox, tmp_path):
    path = inbox / "a.txt"
    path.write_text("1\n")
    run = spool(cleanup_policy="none")
    run.records()
    run.commit()
    os.system(f"cp -p {path} {tmp_path / 'copy'} && mv {tmp_path / 'copy'} {path}")
    again = run.again()
    assert again.records() == []
    again.commit()
    with path.open("a") as file:
        file.write("2\n")
    assert values(again.records()) == ["2"]
    again.stop()


def test_every_batch_is_a_place_to_go_on_from(spool, inbox):
    (inbox / "a.csv").write_text('n,s\n1,"two\nlines"\n2,x\n\n3,"y"\n4,z')
    records = spool(batch_size=1).records()
    assert [r.value["n"] for r in records] == ["1", "2", "3", "4"]
    for i, record in enumerate(records):
        again = spool(spool().store_at(record), batch_size=1)
        assert [r.value["n"] for r in again.records()] == ["1", "2", "3", "4"][i + 1 :]


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_compressed_files_and_going_on_within_them(spool, inbox, suffix):
    text = b"".join(b"%d\n" % n for n in range(5000))
    if suffix == "gz":
        data = gzip.compress(text)
    else:
        data = pytest.importorskip("backports.zstd").compress(text)
    (inbox / f"a.txt.{suffix}").write_bytes(data)
    run = spool(batch_size=999)
    first = run.poll()
    run.commit()
    again = run.again()
    assert values(first + again.records()) == [str(n) for n in range(5000)]
    again.stop()


def test_a_gzip_that_was_cut_off_gives_its_rows_and_is_an_error(spool, inbox):
    (inbox / "a.txt.gz").write_bytes(gzip.compress(os.urandom(3000).hex().encode())[:-200])
    with pytest.raises(ConnectError, match=r"in/a\.txt\.gz, after line 0: Compressed file ended"):
        spool().records()


def test_a_bad_row_is_reported_with_its_line_and_the_others_go_on(spool, inbox):
    (inbox / "a.jsonl").write_bytes(b'{"n":1}\n{"n":\n\n{"n":\xff}\n{"n":4}\n')
    run = spool()
    records = run.records() + run.records()
    assert values(records) == [{"n": 1}, {"n": 4}]
    (first, why), (second, why_not) = reported(run)
    assert first == '{"n":' and "a.jsonl, line 2: a line that is no JSON" in why
    assert second == b'{"n":\xff}\n' and "a.jsonl, line 4: 'utf-8' codec" in why_not


def test_bad_rows_of_csv_and_of_keys_and_times(spool, inbox):
    (inbox / "a.csv").write_bytes(b"id,at\n1,2026-01-01\n2\n3,no time\n4,2026-01-02\n\xff,x\n5,2026-01-03\n")
    run = spool(key_field="id", timestamp_field="at", line_field="line")
    records = run.records() + run.records()
    assert [(r.key, r.value["line"]) for r in records] == [("1", 2), ("4", 5), ("5", 7)]
    assert [why.split("a.csv, ")[1].split(":")[0] for _, why in reported(run)] == [
        "line 3",
        "line 4",
        "line 6",
    ]


def test_a_file_of_bad_rows_only_is_done_once_they_are_told(spool, inbox, done):
    (inbox / "a.jsonl").write_text("x\ny\n")
    run = spool()
    assert run.records() == [] and len(reported(run)) == 2
    run.commit()
    assert [p.name for p in done.iterdir()] == ["a.jsonl"]


def test_an_empty_file_is_put_away(spool, inbox, done):
    (inbox / "a.csv").touch()
    run = spool()
    assert run.records() == []
    run.commit()
    assert [p.name for p in done.iterdir()] == ["a.csv"]


def test_a_file_that_is_still_written_is_not_read_yet(spool, inbox, monkeypatch):
    (inbox / "a.txt").write_text("1\n")
    run = spool(file_minimum_age_ms=5000)
    assert run.records() == []
    later = (inbox / "a.txt").stat().st_ctime + 6
    monkeypatch.setattr(run.tasks[0]._folder, "_clock", lambda: later)
    run.tasks[0]._look_at = 0
    assert values(run.records()) == ["1"]


def test_a_file_that_grows_while_it_is_read_is_read_on_when_it_stands_still(spool, inbox, caplog):
    path = inbox / "a.txt"
    path.write_text("".join(f"{n}\n" for n in range(10)))
    run = spool(batch_size=4)
    first = run.poll()
    run.commit()
    with path.open("a") as file:
        file.write("10\n")
    with caplog.at_level(logging.WARNING):
        rest = run.records()
    assert values(first + rest) == [str(n) for n in range(11)]
    assert "is still written to" in caplog.text and "it is read on behind line 4" in caplog.text


def test_a_file_rewritten_while_it_is_read_is_an_error(spool, inbox):
    path = inbox / "a.txt"
    path.write_text("".join(f"{n}\n" for n in range(10)))
    run = spool(batch_size=4)
    run.poll()
    with path.open("r+") as file:
        file.truncate(4)
    with pytest.raises(ConnectError, match=r"a\.txt, after line 4: it was changed while it was read"):
        run.poll()


def test_a_file_removed_or_replaced_while_it_is_read_is_read_to_its_end(spool, inbox, tmp_path):
    path = inbox / "a.txt"
    path.write_text("".join(f"{n}\n" for n in range(6)))
    run = spool(batch_size=4)
    first = run.poll()
    (tmp_path / "new").write_text("new\n")
    (tmp_path / "new").rename(path)
    assert values(first + run.poll()) == [str(n) for n in range(6)]
    run.commit()
    assert path.read_text() == "new\n"
    assert values(run.records()) == ["new"]


def test_a_file_that_cannot_be_read_may_be_set_aside(spool, inbox, tmp_path, done):
    (inbox / "a.json").write_text('[{"n":1}, {"n":2')
    (inbox / "b.json").write_text('[{"n":3}]')
    run = spool(halt_on_error="false", error_path=tmp_path / "bad", batch_size=1)
    assert values(run.records()) == [{"n": 1}, {"n": 3}]
    run.commit()
    assert [p.name for p in (tmp_path / "bad").iterdir()] == ["a.json"]
    assert [p.name for p in done.iterdir()] == ["b.json"]


def test_a_file_without_permission_is_named(spool, inbox, monkeypatch):
    (inbox / "a.txt").write_text("1\n")

    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("plugins.files.spool.file.FileIdentity.of", refuse)
    with pytest.raises(ConnectError, match=r"in/a\.txt, after line 0: .*Permission denied"):
        spool().records()


def test_folders_below_links_in_circles_hidden_names_and_pipes(spool, inbox, done):
    (inbox / "sub").mkdir()
    (inbox / "sub" / "a.txt").write_text("1")
    (inbox / "loop").symlink_to(inbox)
    (inbox / "self").symlink_to(inbox / "self")
    (inbox / "nowhere").symlink_to(inbox / "none")
    (inbox / ".hidden").write_text("no")
    (inbox / "skip.tmp").write_text("no")
    os.mkfifo(inbox / "pipe")
    run = spool(input_path_walk_recursively="true", input_file_pattern=r".*(?<!\.tmp)")
    records = run.records()
    assert values(records) == ["1"]
    assert records[0].source_partition == {"filename": "sub/a.txt"}
    run.commit()
    assert (done / "sub" / "a.txt").read_text() == "1"


def test_a_name_that_is_no_utf8(spool, inbox, done):
    name = os.fsdecode(b"caf\xe9.txt")
    (inbox / name).write_text("1\n{\n")
    run = spool(format="jsonl")
    (record,) = run.records()
    assert record.source_partition == {"filename_hex": b"caf\xe9.txt".hex()}
    assert "caf\\xe9.txt, line 2" in reported(run)[0][1]
    run.commit()
    assert [p.name for p in done.iterdir()] == [name]


def test_tasks_share_the_files_and_another_number_of_tasks_reads_none_twice(spool, inbox):
    for n in range(20):
        (inbox / f"{n}.txt").write_text(f"{n}a\n{n}b\n{n}c\n")
    run = spool(tasks=3, cleanup_policy="none", batch_size=2)
    first = [record for task in range(3) for record in run.poll(task)]
    assert len(first) == 6
    run.commit()
    store = run.store
    run.stop()
    rest = spool(store, tasks=5, cleanup_policy="none", batch_size=2).records()
    assert sorted(values(first + rest)) == sorted(f"{n}{c}" for n in range(20) for c in "abc")


def test_more_files_than_one_look_returns(spool, inbox, monkeypatch):
    monkeypatch.setattr(folder_module, "FILES_MAX", 3)
    for n in range(8):
        (inbox / f"{n}.txt").write_text(str(n))
    run = spool()
    texts = []
    for _ in range(8):
        texts += values(run.records())
    assert texts == [str(n) for n in range(8)]


@pytest.mark.parametrize("order", ["oldest", "smallest"])
def test_orders(spool, inbox, order):
    for name, size, age in (("a", 1, 1), ("b", 3, 3), ("c", 2, 2)):
        (inbox / name).write_text(name * size)
        os.utime(inbox / name, (1000 - age, 1000 - age))
    expected = {"oldest": ["bbb", "cc", "a"], "smallest": ["a", "cc", "bbb"]}
    assert values(spool(file_order=order).records()) == expected[order]


def test_a_folder_that_vanishes_is_waited_for_and_one_that_never_was_is_named(spool, inbox, tmp_path):
    from connect.api import RetriableError

    run = spool()
    inbox.rename(tmp_path / "away")
    with pytest.raises(RetriableError, match="in cannot be looked through: No such file"):
        run.poll()
    with pytest.raises(ConnectError, match=r"input\.path=.*/in: there is no such folder"):
        spool()


def test_a_file_that_cannot_be_moved_fails_the_task_with_the_reason(spool, inbox, done):
    (inbox / "a.txt").write_text("1")
    done.write_text("no folder")
    run = spool()
    run.records()
    with pytest.raises(ConnectError, match=r"a\.txt was read and cannot be moved away"):
        run.commit()


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"finished_path": ""}, "finished.path"),
        ({"halt_on_error": "false"}, "error.path"),
        ({"input_file_pattern": "("}, "input.file.pattern"),
        ({"csv_types": "infer", "csv_schema": "a:int8"}, "csv.types"),
    ],
)
def test_settings_that_do_not_fit(spool, more, key):
    with pytest.raises(ConfigError) as error:
        spool(**more)
    assert error.value.key == key


def test_the_finished_folder_is_not_read_again(spool, inbox):
    with pytest.raises(ConfigError, match=r"finished\.path"):
        spool(finished_path=inbox / "done", input_path_walk_recursively="true")
    spool(finished_path=inbox / "done")
