"""Where everything of one run is: its folder, its ports, and the config file of every part."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from logd.client import NewTopic
from millstream.demo.ports import free_port

PARTITIONS = 4
APPLICATION = "airline-delays"
FLIGHTS, AIRLINES, DELAYS = "flights", "airlines", "airline-delays"
MIRRORED = (FLIGHTS, DELAYS)

_KEPT = {"retention.ms": "-1"}
"""These are records of 2013 and retention goes by record time: nothing may expire."""

DELAYS_SCHEMA = (
    "carrier STRING, name STRING, day STRING, departures LONG, cancellations LONG, delay_minutes LONG, "
    "mean_delay DOUBLE"
)
"""Of `airline-delays` in Spark's table; the columns of flights are those of the CSV, whatever it has."""

TOPICS = (
    NewTopic(FLIGHTS, PARTITIONS, 1, _KEPT),
    NewTopic(AIRLINES, PARTITIONS, 1, {**_KEPT, "cleanup.policy": "compact"}),
    NewTopic(DELAYS, PARTITIONS, 1, _KEPT),
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths and addresses of one run. `write_configs` puts every config file in place."""

    folder: Path
    flights: Path
    airlines: Path
    dc1_port: int
    dc2_port: int

    @classmethod
    def choose(cls, folder: Path, flights: Path, airlines: Path) -> Layout:
        """Well-known ports where they are free, others where they are not."""
        dc1 = free_port(9092)
        dc2 = free_port(9192)
        return cls(folder, flights, airlines, dc1, dc2)

    @property
    def dc1(self) -> str:
        """Bootstrap servers of the first data centre."""
        return f"127.0.0.1:{self.dc1_port}"

    @property
    def dc2(self) -> str:
        """Bootstrap servers of the second."""
        return f"127.0.0.1:{self.dc2_port}"

    @property
    def spark_socket(self) -> Path:
        """Where the Spark driver answers queries."""
        return self.folder / "spark.socket"

    def table(self, topic: str) -> Path:
        """The Parquet table of a topic."""
        return self.folder / "tables" / topic

    def log(self, part: str) -> Path:
        """What a part has printed."""
        return self.folder / f"{part}.log"

    def logd(self, name: str, port: int) -> list[str]:
        """The command of a log daemon."""
        return self._millstream(
            "logd",
            "--override",
            f"listeners=PLAINTEXT://127.0.0.1:{port}",
            "--override",
            f"log.dirs={self.folder / name}",
            "--override",
            "group.initial.rebalance.delay.ms=0",
        )

    def files_worker(self) -> list[str]:
        """The command of the Connect worker that reads the CSV files, and ends with them."""
        config = self.folder / "config"
        return self._millstream(
            "connect",
            "standalone",
            "--exit-when-done",
            str(config / "files-worker.properties"),
            str(config / "flights-source.properties"),
            str(config / "airlines-source.properties"),
        )

    def streams(self) -> list[str]:
        """The command of the streams application."""
        return [
            sys.executable,
            "-m",
            "millstream.demo.application",
            str(self.folder / "config" / "streams.properties"),
        ]

    def mirror(self) -> list[str]:
        """The command of the mirror."""
        return self._millstream("mirror", "run", str(self.folder / "config" / "mm2.properties"))

    def spark_worker(self) -> list[str]:
        """The command of the Connect worker with the Spark sinks."""
        config = self.folder / "config"
        return self._millstream(
            "connect",
            "standalone",
            str(config / "spark-worker.properties"),
            str(config / "delays-sink.properties"),
            str(config / "flights-sink.properties"),
        )

    def _millstream(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "millstream", *args]

    def write_configs(self) -> None:
        """Write every part's config file into `folder`/config."""
        folder = self.folder / "config"
        folder.mkdir(parents=True, exist_ok=True)
        for name, settings in (
            ("files-worker", self._worker("files.offsets")),
            ("flights-source", self._flights_source()),
            ("airlines-source", self._airlines_source()),
            ("streams", self._streams()),
            ("mm2", self._mirror()),
            ("spark-worker", self._worker("spark.offsets")),
            ("delays-sink", {**self._spark_sink(DELAYS), "value.schema": DELAYS_SCHEMA}),
            ("flights-sink", self._spark_sink(FLIGHTS)),
        ):
            lines = [f"{key}={value}\n" for key, value in settings.items()]
            (folder / f"{name}.properties").write_text("".join(lines), encoding="utf-8")

    def _worker(self, offsets: str) -> Mapping[str, object]:
        return {
            "bootstrap.servers": self.dc1,
            "key.converter": "string",
            "value.converter": "json",
            "value.converter.schemas.enable": "false",
            "offset.storage.file.filename": self.folder / offsets,
            "offset.flush.interval.ms": 1000,
        }

    def _flights_source(self) -> Mapping[str, object]:
        return {
            "name": "flights",
            "connector.class": "FilesSource",
            "tasks.max": 1,
            "file": self.flights,
            "format": "csv",
            "stop.at.eof": "true",
            "topic": FLIGHTS,
            "key.field": "carrier",
            "timestamp.field": "{year}-{month}-{day}",
            "line.field": "line",
            "csv.types": "infer",
            "csv.null": "NA,",
        }

    def _airlines_source(self) -> Mapping[str, object]:
        return {
            "name": "airlines",
            "connector.class": "FilesSource",
            "tasks.max": 1,
            "file": self.airlines,
            "format": "csv",
            "stop.at.eof": "true",
            "topic": AIRLINES,
            "key.field": "carrier",
            # The table comes before every flight: records are taken lowest timestamp first.
            "timestamp.constant": 0,
        }

    def _streams(self) -> Mapping[str, object]:
        return {
            "application.id": APPLICATION,
            "bootstrap.servers": self.dc1,
            "state.dir": self.folder / "state",
            "commit.interval.ms": 1000,
            # A killed application gets its tasks back at once, without waiting for its old session to end.
            "group.instance.id": f"{APPLICATION}-1",
        }

    def _mirror(self) -> Mapping[str, object]:
        return {
            "clusters": "dc1, dc2",
            "dc1.bootstrap.servers": self.dc1,
            "dc2.bootstrap.servers": self.dc2,
            "dc1->dc2.enabled": "true",
            "dc1->dc2.topics": ", ".join(MIRRORED),
            "replication.factor": 1,
            "offset-syncs.topic.replication.factor": 1,
            "refresh.topics.interval.seconds": 1,
        }

    def _spark_sink(self, topic: str) -> Mapping[str, object]:
        return {
            "name": f"spark-{topic}",
            "connector.class": "SparkSink",
            "topics": topic,
            "path": self.table(topic),
            "key.format": "string",
            # Not "month": flights have a field of that name.
            "partition.by": "year_month=date_format(timestamp,'yyyy-MM')",
            "spark.master": "local[2]",
            "driver.socket": self.spark_socket,
            "driver.log.file": self.log("spark-driver"),
            "min.offsets.per.trigger": 100_000,
            "max.trigger.delay.ms": 4000,
        }
