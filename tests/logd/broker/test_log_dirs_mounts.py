"""Log directories on file systems that are really read-only, or really full. Only a privileged user can
mount them.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from kafka_client.errors import ErrorCode
from tests.logd.broker.log_dirs import fill, home, logd_in, read, state
from tests.support.depth import deep
from tests.support.full_disk import mounted
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic

ONLINE, OFFLINE = (0, 1), (ErrorCode.LEADER_NOT_AVAILABLE, -1)
SMALL = {"millstream.flush.interval.ms": "50"}


@deep
def test_a_read_only_folder_is_left_out(tmp_path: Path) -> None:
    logd, folder = logd_in(tmp_path, "a", "b"), tmp_path / "b"
    with logd:
        create_topic(logd, "t", partitions=2)
        with RawClient(logd.port) as client:
            for partition in (0, 1):
                fill(client, "t", range(3), partition=partition)
        assert (home(tmp_path, "t-0"), home(tmp_path, "t-1")) == ("a", "b")
        logd.stop()
        with mounted(folder, "--bind", str(folder)):
            subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
            logd.start()
            with RawClient(logd.port) as client:
                assert state(client, "t") == [ONLINE, OFFLINE]
                fill(client, "t", range(3, 5), partition=0)
                refused = client.produce("t", [(1, b"k", b"v", ())], partition=1)
                assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert "Read-only file system" in logd.log
            logd.stop()
        logd.start()
        with RawClient(logd.port) as client:
            assert state(client, "t") == [ONLINE, ONLINE]
            assert read(client, "t", partition=0) == [0, 1, 2, 3, 4]
            assert read(client, "t", partition=1) == [0, 1, 2]
    assert "Traceback" not in logd.log


@deep
def test_a_full_disk_takes_its_folder_offline_and_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "b"
    folder.mkdir()
    with (
        mounted(folder, "-t", "tmpfs", "-o", "size=1m", "tmpfs"),
        logd_in(tmp_path, "a", "b", settings=SMALL) as logd,
    ):
        create_topic(logd, "t", partitions=2)
        written = 0
        with RawClient(logd.port) as client:
            fill(client, "t", range(3), partition=0)
            while client.produce("t", [record(written)], partition=1).error_code == 0:
                written += 1
            assert 5 < written < 100
            assert state(client, "t") == [ONLINE, OFFLINE]
            fill(client, "t", range(3, 5), partition=0)
        assert "No space left on device" in logd.log
        logd.stop()
        subprocess.run(["mount", "-o", "remount,size=8m", str(folder)], check=True)
        logd.start()
        with RawClient(logd.port) as client:
            assert state(client, "t") == [ONLINE, ONLINE]
            assert read(client, "t", partition=1) == list(range(written))
            fill(client, "t", range(written, written + 2), partition=1)
        assert logd.stop() == 0
    assert "Traceback" not in logd.log


def record(number: int) -> tuple[int, bytes, bytes, tuple[()]]:
    """Return a record of 50 KB, as `fill` makes them."""
    return 1_700_000_000_000, b"k", b"%d:" % number + b"x" * 50_000, ()
