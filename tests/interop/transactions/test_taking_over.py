"""logd goes on where an Apache Kafka or an earlier logd stopped, in the same folder: records, groups,
transactions.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.interop.transactions.clients.base import Fenced, load
from tests.interop.transactions.conftest import SETTINGS
from tests.interop.transactions.test_semantics import until
from tests.support.depth import deep
from tests.support.kafka_folder import ABORTED, COMMITTED, FOLDER, OPEN, PLAIN
from tests.support.logd_process import LogdProcess
from tests.support.released_folder import RELEASED

pytestmark = deep

FOR_EVER = {"log.retention.ms": -1, "offsets.retention.minutes": 2**31 - 1}
"""The folders in tests/golden grow older with every day."""
CLEAN = ".kafka_cleanshutdown"


@pytest.mark.parametrize("ending", ["stopped", "killed"])
@pytest.mark.parametrize("folder", [FOLDER, *RELEASED], ids=lambda folder: folder.name)
def test_taking_over(tmp_path: Path, folder: Path, ending: str) -> None:
    confluent = load("confluent")
    shutil.copytree(folder, tmp_path / "data")
    if ending == "killed":
        (tmp_path / "data" / CLEAN).unlink()
    with LogdProcess(tmp_path, {**SETTINGS, **FOR_EVER}) as logd:

        def read(*, committed: bool) -> list[bytes]:
            return confluent.read(logd.bootstrap, "all", 1, committed=committed)

        stable = sorted(value.encode() for value in [*COMMITTED, *PLAIN, ""])
        everything = sorted([*stable, *(value.encode() for value in [*ABORTED, *OPEN])])
        assert read(committed=False) == everything
        assert read(committed=True) == stable

        consumer = confluent.consumer(logd.bootstrap, "group-classic", "all")
        assert consumer.committed(1) == {0: 7}
        consumer.close()

        # Taking the transactional id of the producer that never came to its end aborts what it left open.
        heir = confluent.producer(logd.bootstrap, "left-open")
        heir.begin()
        heir.send("all", b"new", 0)
        heir.commit()
        until(lambda: read(committed=True), sorted([*stable, b"new"]))
        assert read(committed=False) == sorted([*everything, b"new"])
        again = confluent.producer(logd.bootstrap, "left-open")
        heir.begin()
        heir.send("all", b"too late", 0)
        with pytest.raises(Fenced):
            heir.commit()
        heir.close()
        again.close()
        assert logd.stop() == 0
        assert "Traceback" not in logd.log
