"""`millstream bench produce|consume`: measures as kafka-producer-perf-test and kafka-consumer-perf-test."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from kafka_client import BatchProducer, Consumer
from kafka_client.errors import RequestTimedOut
from kafka_client.properties import CONSUMER, PRODUCER, ClientProperties
from millstream.commands.bench.consuming import ConsumeBench
from millstream.commands.bench.payload import file_payloads, random_payloads, slices
from millstream.commands.bench.producing import ProduceBench, slice_size
from millstream.data_types.escapes import unescaped
from millstream.terminal.command import command
from millstream.terminal.output import Row
from millstream.terminal.session import Session
from millstream.terminal.status import Partly, UsageError

app = typer.Typer(add_completion=False, no_args_is_help=True)

MB = 1024 * 1024
"""Bytes of a megabyte, as in Kafka's tools."""

Topic = Annotated[str, typer.Argument(metavar="TOPIC", show_default=False)]
NumRecords = Annotated[int, typer.Option("--num-records", "-n", min=1, help="How many records.")]


@app.callback()
def _options() -> None:
    """Measure how fast records are written and read."""


@command(app, effective=tuple(PRODUCER))
async def produce(
    session: Session,
    *,
    topic: Topic,
    num_records: NumRecords,
    record_size: Annotated[int | None, typer.Option(min=0, help="Bytes of a record, random letters.")] = None,
    payload_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Records to write in turn, instead.")
    ] = None,
    payload_delimiter: Annotated[str, typer.Option(help="Ends a record in that file.")] = "\\n",
    throughput: Annotated[float, typer.Option(help="Records a second at most; -1: no limit.")] = -1,
    compression_type: Annotated[
        Literal["none", "gzip", "snappy", "lz4", "zstd"] | None,
        typer.Option(help="How batches are compressed."),
    ] = None,
    acks: Annotated[Literal["all", "-1", "0", "1"] | None, typer.Option(help="Who acknowledges.")] = None,
) -> None:
    """Write records, and say how many a second and how long their acknowledgements took."""
    if (record_size is None) == (payload_file is None):
        raise UsageError("give --record-size or --payload-file")
    if payload_file is None:
        payloads = random_payloads(record_size or 0)
    else:
        payloads = file_payloads(payload_file, unescaped(payload_delimiter))
    settings = ClientProperties.layered(session.servers.properties, "").producer()
    if compression_type is not None:
        settings["compression_type"] = compression_type
    if acks is not None:
        settings["acks"] = -1 if acks == "all" else int(acks)
    count = (await session.client.topic(topic)).partition_count
    async with BatchProducer(session.client, **settings) as producer:
        bench = ProduceBench(producer, topic, count)
        with session.progress("writing", num_records, unit="records") as progress:
            await bench.run(
                slices(payloads, num_records, slice_size(payloads, throughput)), throughput, progress
            )
    row = _produced(bench)
    session.show_one(row, tuple(row))


def _produced(bench: ProduceBench) -> Row:
    latencies = bench.latencies
    middle, p95, p99, p999 = latencies.percentiles_ms(0.5, 0.95, 0.99, 0.999)
    return {
        "records": latencies.count,
        "seconds": round(bench.seconds, 6),
        "records_per_second": round(latencies.count / bench.seconds, 1),
        "mb_per_second": round(bench.bytes_sent / MB / bench.seconds, 2),
        "latency_avg_ms": round(latencies.average_ms, 2),
        "latency_max_ms": round(latencies.max_ms, 2),
        "latency_50th_ms": middle,
        "latency_95th_ms": p95,
        "latency_99th_ms": p99,
        "latency_99_9th_ms": p999,
    }


@command(app, effective=tuple(CONSUMER))
async def consume(
    session: Session,
    *,
    topic: Topic,
    num_records: NumRecords,
    group: Annotated[
        str | None, typer.Option("--group", "-g", help="Read as a member of this group.")
    ] = None,
    from_latest: Annotated[bool, typer.Option(help="Begin at the end: read what comes from now on.")] = False,
    timeout_ms: Annotated[
        int, typer.Option("--timeout", min=1, help="ms without a record that end it.")
    ] = 10_000,
) -> None:
    """Read records, and say how many a second."""
    settings = ClientProperties.layered(session.servers.properties, "").consumer()
    settings["auto_offset_reset"] = "latest" if from_latest else "earliest"
    partitions = (await session.client.metadata([topic])).partitions([topic])
    bench = ConsumeBench(began_at=time.time())
    async with Consumer(session.client, group, **settings) as consumer:
        if group is None:
            await consumer.assign(partitions)
        else:
            await consumer.subscribe([topic])
            await consumer.wait_assigned()
        bench.assigned_at = time.time()
        with session.progress("reading", num_records, unit="records") as progress:
            await bench.run(consumer, num_records, timeout_ms, progress)
    if not bench.records:
        raise RequestTimedOut(f"{topic}: no record came within {timeout_ms} ms")
    row = _consumed(bench)
    session.show_one(row, tuple(row))
    if bench.records < num_records:
        raise Partly(f"{bench.records} of {num_records} records came, then none for {timeout_ms} ms")


def _consumed(bench: ConsumeBench) -> Row:
    total = bench.ended_at - bench.began_at
    fetching = max(bench.ended_at - bench.assigned_at, 1e-6)
    megabytes = bench.bytes_read / MB
    return {
        "start_time": _text(bench.began_at),
        "end_time": _text(bench.ended_at),
        "mb": round(megabytes, 4),
        "mb_per_second": round(megabytes / total, 4),
        "records": bench.records,
        "records_per_second": round(bench.records / total, 1),
        "rebalance_time_ms": round((bench.assigned_at - bench.began_at) * 1000),
        "fetch_time_ms": round(fetching * 1000),
        "fetch_mb_per_second": round(megabytes / fetching, 4),
        "fetch_records_per_second": round(bench.records / fetching, 1),
    }


def _text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="milliseconds")
