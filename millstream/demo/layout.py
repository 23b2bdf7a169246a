"""The files, ports and configurations of a run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kafka_client import NewTopic
from millstream.demo.ports import free_port

PARTITIONS = 4
APPLICATION = "airline-delays"
FLIGHTS, AIRLINES, DELAYS = "flights", "airlines", "airline-delays"
MIRRORED = (FLIGHTS, DELAYS)

_KEPT = {"retention.ms": "-1"}
"""Unlimited retention, since the records are of 2013 and retention goes by record time."""

DELAYS_SCHEMA = (
    "carrier STRING, name STRING, day STRING, departures LONG, cancellations LONG, delay_minutes LONG, "
    "mean_delay DOUBLE"
)
"""The schema of `airline-delays` in Spark's table; the flights have the columns of the CSV."""

REPLICAS_MAX = 3
MIN_IN_SYNC = 2
"""min.insync.replicas in a cluster: acknowledged records are on two nodes, so that one may be lost."""
FLIGHTS_PER_SECOND = 15_000
"""The rate with a killed leader, so that flights come in for seconds on the fastest machine, too."""
SESSION_MS = 6000
"""The timeout of ZooKeeper sessions, after which others lead the partitions of a lost node."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths and addresses of a run. `write_configs` writes every config file."""

    folder: Path
    flights: Path
    airlines: Path
    dc1_ports: tuple[int, ...]
    """The port of each node. A single node is standalone; several are a cluster."""
    dc2_port: int
    flights_per_second: int | None = None
    """The most flights per second that are read from the CSV; None: as many as possible."""

    @classmethod
    def choose(
        cls,
        folder: Path,
        flights: Path,
        airlines: Path,
        nodes: int = 1,
        *,
        flights_per_second: int | None = None,
    ) -> Layout:
        """Choose the ports: well-known ones if they are free, others if not."""
        dc1 = tuple(free_port(9092 + node) for node in range(nodes))
        dc2 = free_port(9192)
        return cls(folder, flights, airlines, dc1, dc2, flights_per_second)

    @property
    def nodes(self) -> range:
        """The ids of the first data centre's nodes."""
        return range(1, len(self.dc1_ports) + 1)

    @property
    def is_cluster(self) -> bool:
        """True if the first data centre has several nodes, which ZooKeeper coordinates."""
        return len(self.dc1_ports) > 1

    @property
    def replicas(self) -> int:
        """The number of replicas in the first data centre."""
        return min(REPLICAS_MAX, len(self.dc1_ports))

    @property
    def topics(self) -> tuple[NewTopic, ...]:
        """The topics of the first data centre, which exist before the parts start."""
        return (
            NewTopic(FLIGHTS, PARTITIONS, self.replicas, _KEPT),
            NewTopic(AIRLINES, PARTITIONS, self.replicas, {**_KEPT, "cleanup.policy": "compact"}),
            NewTopic(DELAYS, PARTITIONS, self.replicas, _KEPT),
        )

    @property
    def dc1(self) -> str:
        """Bootstrap servers of the first data centre."""
        return ",".join(f"127.0.0.1:{port}" for port in self.dc1_ports)

    @property
    def dc2(self) -> str:
        """Bootstrap servers of the second data centre."""
        return f"127.0.0.1:{self.dc2_port}"

    @property
    def spark_socket(self) -> Path:
        """The socket at which the Spark driver answers queries."""
        return self.folder / "spark.socket"

    def table(self, topic: str) -> Path:
        """Return the path of the Parquet table of a topic."""
        return self.folder / "tables" / topic

    def log(self, part: str) -> Path:
        """Return the path of the output of a part."""
        return self.folder / f"{part}.log"

    def dc1_logd(self) -> list[str]:
        """Return the command of the first data centre's standalone broker."""
        return self._logd("dc1", self.dc1_ports[0])

    def dc1_node(self, node: int, zookeeper: str) -> list[str]:
        """Return the command of a broker in the cluster; `zookeeper` is a connect string."""
        replicas = {
            f"{kind}replication.factor": self.replicas
            for kind in ("default.", "offsets.topic.", "transaction.state.log.")
        }
        cluster = {
            "node.id": node,
            "zookeeper.connect": zookeeper,
            "zookeeper.session.timeout.ms": SESSION_MS,
            "min.insync.replicas": MIN_IN_SYNC,
        }
        return self._logd(f"dc1-{node}", self.dc1_ports[node - 1], {**cluster, **replicas})

    def dc2_logd(self) -> list[str]:
        """Return the command of the second data centre's broker."""
        return self._logd("dc2", self.dc2_port)

    def _logd(self, name: str, port: int, more: Mapping[str, object] | None = None) -> list[str]:
        settings = {
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": self.folder / name,
            "group.initial.rebalance.delay.ms": 0,
            **(more or {}),
        }
        overrides = [word for key, value in settings.items() for word in ("--override", f"{key}={value}")]
        return self._millstream("logd", *overrides)

    def files_worker(self) -> list[str]:
        """Return the command of the Connect worker that reads the CSV files, and ends with them."""
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
        """Return the command of the streams application."""
        return [
            sys.executable,
            "-m",
            "millstream.demo.application",
            str(self.folder / "config" / "streams.properties"),
        ]

    def mirror(self) -> list[str]:
        """Return the command of the mirror."""
        return self._millstream("mirror", "run", str(self.folder / "config" / "mm2.properties"))

    def spark_worker(self) -> list[str]:
        """Return the command of the Connect worker with the Spark sinks."""
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
        rate = self.flights_per_second
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
            **({} if rate is None else {"rate.limit.records.per.second": rate}),
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
            # The table is read before every flight, since records are read lowest timestamp first.
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
            "offset-syncs.topic.replication.factor": self.replicas,
            "checkpoints.topic.replication.factor": 1,
            "emit.heartbeats.enabled": "false",
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
