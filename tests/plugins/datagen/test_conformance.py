"""The datagen source passes the tests that every source passes, its claim of exactly once included."""

from collections.abc import Mapping
from pathlib import Path

from connect.testing import SourceRun
from connect.testing.conformance import SourceConformance
from plugins.datagen import DatagenSource
from plugins.datagen.source import DatagenTask


class GrowingTask(DatagenTask):
    """A task with as many iterations as a file says, since datagen itself gets no records added."""

    def start(self, config: Mapping[str, str]) -> None:
        count = Path(config["count"])
        super().start({**config, "iterations": count.read_text() if count.exists() else "0"})


class GrowingDatagen(DatagenSource):
    task_class = GrowingTask


class TestDatagen(SourceConformance):
    connector = GrowingDatagen
    poll_max = 3

    def config(self, folder: Path) -> dict[str, str]:
        return {
            "topic": "numbers",
            "fields": '{"number": {"type": "long", "iteration": {}}}',
            "batch.size": "3",
            "count": str(folder / "count"),
        }

    def add(self, folder: Path, numbers: range) -> None:
        (folder / "count").write_text(str(numbers.stop))

    def test_every_record_is_read_once(self, folder: Path) -> None:
        """Each task makes all numbers, as records of its own."""
        self.add(folder, range(20))
        run = SourceRun(self.connector, self.config(folder), max_tasks=3)
        numbers = sorted(self.number(record) for record in run.records())
        run.stop()
        assert numbers == sorted([*range(20)] * 3)


def test_datagen_claims_exactly_once():
    assert DatagenSource().exactly_once_support({"topic": "t", "quickstart": "users"})
