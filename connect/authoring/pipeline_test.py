"""Runs a pipeline's tests: records through a connector's converters and transforms, without a broker."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from connect.api.records import Header, SinkRecord, SourceRecord
from connect.authoring.pipeline_file import ExpectedRecord, PipelineFile, PipelineRecord, PipelineTest
from connect.converters.json_schemas import schema_from_json
from connect.errors import ConnectError
from connect.runtime.conversion import Conversion
from connect.runtime.plugins import connector_class, connector_type
from connect.runtime.worker_config import WorkerConfig
from connect.transforms.chain import TransformChain
from kafka_client import TopicPartition

_Output = dict[str, Any]
"""A record that came out, by the fields of ExpectedRecord."""


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """The result of one test; it passed if there are no differences."""

    name: str
    differences: Sequence[str]


def run_tests(file: PipelineFile) -> Iterator[PipelineResult]:
    """Run the tests of a file in order. Raises ConfigError or NotFound for a config that is not valid."""
    worker = WorkerConfig.parse(file.worker)
    is_sink = connector_type(connector_class(str(file.connector.get("connector.class", "")))) == "sink"
    conversion = Conversion.configured(worker, file.connector)
    for test in file.tests:
        chain = TransformChain.configured(file.connector)  # each test has transforms without a past
        try:
            pipeline = _SinkPipeline(conversion, chain) if is_sink else _SourcePipeline(conversion, chain)
            yield PipelineResult(test.name, _differences(test, pipeline))
        finally:
            chain.close()


class _SinkPipeline:
    """The way from the log to a sink task's `put`."""

    def __init__(self, conversion: Conversion, chain: TransformChain) -> None:
        self._conversion, self._chain = conversion, chain

    def run(self, index: int, record: PipelineRecord) -> list[_Output]:
        """Return what comes out for a record of the log. Raises the error of the stage that fails."""
        offset = index if record.offset is None else record.offset
        headers = tuple((name, _data(value)) for name, value in record.headers.items())
        stored = (offset, record.timestamp or 0, _data(record.key), _data(record.value), headers)
        tp = TopicPartition(record.topic, record.partition)
        converted = self._conversion.from_log(tp, [stored], 0)
        return [_sink_output(each) for each in self._chain.apply(converted)]


class _SourcePipeline:
    """The way from a source task's `poll` to the log."""

    def __init__(self, conversion: Conversion, chain: TransformChain) -> None:
        self._conversion, self._chain = conversion, chain

    def run(self, index: int, record: PipelineRecord) -> list[_Output]:
        """Return what comes out for a record of the source. Raises the error of the stage that fails."""
        schemas = [
            None if each is None else schema_from_json(each)
            for each in (record.key_schema, record.value_schema)
        ]
        headers: tuple[Header, ...] = tuple((name, None, value) for name, value in record.headers.items())
        polled = SourceRecord(
            record.topic,
            record.value,
            key=record.key,
            timestamp=record.timestamp,
            partition=record.partition,
            headers=headers,
            key_schema=schemas[0],
            value_schema=schemas[1],
        )
        outputs = []
        for each in self._chain.apply([polled]):
            ((timestamp, key, value, stored_headers),) = self._conversion.to_log(each.topic, [each])
            outputs.append(
                {
                    "topic": each.topic,
                    "partition": each.partition,
                    "timestamp": timestamp,
                    "key": key,
                    "value": value,
                    "headers": dict(stored_headers),
                }
            )
        return outputs


def _sink_output(record: SinkRecord) -> _Output:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "timestamp": record.timestamp,
        "key": record.key,
        "value": record.value,
        "headers": {name: value for name, _, value in record.headers},
    }


def _data(value: Any) -> bytes | None:
    """Return the bytes of a key, value or header in the log: text as it is, anything else as JSON."""
    if value is None or isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else msgspec.json.encode(value)


def _differences(test: PipelineTest, pipeline: _SinkPipeline | _SourcePipeline) -> list[str]:
    outputs: list[_Output] = []
    errors: list[str] = []
    for index, record in enumerate(test.records):
        try:
            outputs += pipeline.run(index, record)
        except ConnectError as e:
            errors.append(f"record {index + 1}: {e}")
    return [*_differing_errors(test.errors, errors), *_differing_records(test.expect, outputs)]


def _differing_errors(expected: Sequence[str], errors: Sequence[str]) -> Iterator[str]:
    for number in range(max(len(expected), len(errors))):
        if number >= len(expected):
            yield f"unexpected error of {errors[number]}"
        elif number >= len(errors):
            yield f"expected an error with {expected[number]!r}, there was none"
        elif expected[number] not in errors[number]:
            yield f"expected an error with {expected[number]!r}, not {errors[number]}"


def _differing_records(expected: Sequence[ExpectedRecord], outputs: Sequence[_Output]) -> Iterator[str]:
    if len(expected) != len(outputs):
        yield f"expected {len(expected)} records, not {len(outputs)}"
    for number, output in enumerate(outputs, start=1):
        if number > len(expected):
            yield f"record {number} is unexpected: {_shown(_plain(output, output))}"
            continue
        for field, value in msgspec.structs.asdict(expected[number - 1]).items():
            if value is not msgspec.UNSET and (actual := _plain(output[field], value)) != _plain(
                value, value
            ):
                yield f"record {number}, {field}: expected {_shown(value)}, not {_shown(actual)}"


def _plain(value: Any, expected: Any) -> Any:
    """Return a value as JSON has it. Bytes are text if text is expected, and are else read as JSON."""
    if isinstance(value, bytes):
        text = value.decode("utf-8", "backslashreplace")
        if isinstance(expected, str):
            return text
        try:
            return json.loads(text)
        except ValueError:
            return text
    if isinstance(value, dict):
        of = expected if isinstance(expected, dict) else {}
        return {str(key): _plain(each, of.get(key)) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each, None) for each in value]
    return msgspec.to_builtins(value)


def _shown(value: Any) -> str:
    return json.dumps(_plain(value, value), ensure_ascii=False, default=repr)
