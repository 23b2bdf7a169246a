"""Options of a stream: those of a read, and how much a micro-batch takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_client.errors import ConfigError
from plugins.spark.offset_choice import LATEST, OffsetChoice, parse_choice
from plugins.spark.option_names import STREAM_READ, check_names
from plugins.spark.option_values import OptionValues
from plugins.spark.options import ReadOptions, read_options

DEFAULT_TRIGGER_DELAY_MS = 900_000
_OF_BATCHES = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """Parsed options of a stream."""

    read: ReadOptions
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    """How long fewer than `min_offsets_per_trigger` records wait, in ms."""
    fetch_attempts: int
    """How often an end before the stream's position is requested before it counts as lost data."""
    retry_interval_ms: int


def parse_stream_options(options: Mapping[str, str]) -> StreamOptions:
    """Parse the options of a stream. Raises ConfigError with the key, its value and the allowed values."""
    values = OptionValues(options)
    for key in _OF_BATCHES:
        if (value := values.get(key)) is not None:
            raise ConfigError(key, value, "a stream has no end: leave it out")
    check_names(options, STREAM_READ)
    least, most = values.positive("minOffsetsPerTrigger"), values.positive("maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        raise ConfigError("minOffsetsPerTrigger", least, f"at most maxOffsetsPerTrigger, which is {most}")
    starting = parse_choice(values.by_name, "starting", LATEST)
    retry_interval_ms = values.positive("fetchOffset.retryIntervalMs", 0)
    return StreamOptions(
        read=read_options(values, starting, OffsetChoice(everywhere=LATEST)),
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=least,
        max_trigger_delay_ms=values.milliseconds("maxTriggerDelay", DEFAULT_TRIGGER_DELAY_MS),
        fetch_attempts=values.positive("fetchOffset.numRetries") or 3,
        retry_interval_ms=1000 if retry_interval_ms is None else retry_interval_ms,
    )
