"""The Spark session of a driver process: quiet, on loopback, quick to start."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from plugins.spark.settings import SparkSettings
from plugins.spark.source import MillstreamDataSource

LOG4J2 = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
logger.conf.name = org.apache.spark.SparkConf
logger.conf.level = error
logger.utils.name = org.apache.spark.util.Utils
logger.utils.level = error
logger.datasource.name = org.apache.spark.sql.execution.datasources.v2.python
logger.datasource.level = error
"""

JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Xss4m"
"""Options for the fastest start. On two cores the start of a session took 6.6 s of CPU, and 12.9 s with the
second compiler. That compiler pays off from the second large batch on: 340,000 rows of JSON then took 7 s of
CPU instead of 15. A connector's spark.driver.extraJavaOptions follow these, so
-XX:TieredStopAtLevel=4 turns it on.
"""


def build_session(settings: SparkSettings, folder: Path) -> SparkSession:
    """Start Spark (5-10 s). `folder` is the session's own, for its temporary files."""
    log4j2 = folder / "log4j2.properties"
    log4j2.write_text(LOG4J2)
    cores = str(os.cpu_count() or 2)
    custom = dict(settings.conf)
    java_options = [
        JAVA_OPTIONS,
        f"-Dlog4j2.configurationFile={log4j2.as_uri()}",
        f"-Djava.io.tmpdir={folder}",
        custom.pop("spark.driver.extraJavaOptions", ""),
    ]
    conf = {
        "spark.driver.memory": settings.memory,
        "spark.driver.extraJavaOptions": " ".join(java_options).strip(),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(folder),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": cores,
        # With few cores and small batches re-planning costs more than it gains.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "spark.cleaner.referenceTracking.blocking": "false",
        **custom,
    }
    builder = SparkSession.builder.appName("millstream").master(settings.master)
    for key, value in conf.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    register_source(session)
    return session


def register_source(session: SparkSession) -> None:
    """Have `format("millstream")` found, also where the Python worker that looks for sources was killed.

    Spark looks once, on the way of this call, and what it has not found then it would never find.
    """
    try:
        session.dataSource.register(MillstreamDataSource)
    except AnalysisException as e:
        if e.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
