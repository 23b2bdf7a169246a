"""`kafka-console-producer`: lines of stdin as records of a topic, as ConsoleProducer has it.

As in Java, a failed send is reported, and the tool continues and ends with 0. With `--sync` it ends with 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from millstream.kafka_tools.java.java_errors import COMMON, JavaError
from millstream.kafka_tools.log import log_error
from millstream.kafka_tools.options.arguments import ZOOKEEPER, Old, Options, OptionValues
from millstream.kafka_tools.options.option import Option
from millstream.kafka_tools.options.properties import (
    check_servers,
    key_values,
    merge,
    read_texts,
    tell_without_effect,
)
from millstream.kafka_tools.running import (
    HELP,
    VERSION,
    Cluster,
    read_client_properties,
    read_or_usage,
    tell,
    tell_notes,
    tool,
)

if TYPE_CHECKING:
    from kafka_client import BatchProducer
    from millstream.commands.produce.sending import Sender
    from millstream.commands.produce.source import Chunk
    from millstream.kafka_tools.console.line_reader import StdinSource
    from millstream.terminal.session import Session

LINE_READER = "org.apache.kafka.tools.LineMessageReader"
OLD_LINE_READER = "kafka.tools.ConsoleProducer$LineMessageReader"
FLUSH_SECONDS = 10.0
"""The time for the acknowledgements of records in flight after Ctrl-C."""

OPTIONS = Options(
    "This tool helps to read data from standard input and publish it to Kafka.",
    [
        Option("topic", "REQUIRED: The topic to write to.", "topic"),
        Option("bootstrap-server", "REQUIRED: The servers to connect to.", "server to connect to"),
        Option("sync", "Send records one at a time, and end with the first error."),
        Option(
            "compression-codec",
            "How batches are compressed: none, gzip, snappy, lz4 or zstd; gzip without a value.",
            "compression-codec",
            optional=True,
        ),
        Option("batch-size", "Bytes that a batch aims at (batch.size).", "size"),
        Option("message-send-max-retries", "Has no effect: delivery.timeout.ms bounds retries.", "Integer"),
        Option("retry-backoff-ms", "The pause before a retry.", "Long"),
        Option("timeout", "How long a batch waits for more records (linger.ms).", "timeout_ms"),
        Option("request-required-acks", "Who acknowledges: all, -1, 0 or 1.", "request required acks"),
        Option("request-timeout-ms", "How long an answer is waited for.", "request timeout ms"),
        Option("metadata-expiry-ms", "How old metadata may be.", "metadata expiration interval"),
        Option("max-block-ms", "How long a topic that is not there is waited for.", "max block on send"),
        Option(
            "max-memory-bytes", "Bytes that may wait to be sent (buffer.memory).", "total memory in bytes"
        ),
        Option(
            "max-partition-memory-bytes",
            "Deprecated: --batch-size, which it replaces.",
            "memory in bytes per partition",
        ),
        Option("line-reader", f"What makes records of lines: {LINE_READER}.", "reader_class"),
        Option("socket-buffer-size", "Has no effect: the system sizes the buffers.", "size"),
        Option("property", "Deprecated: --reader-property.", "prop"),
        Option(
            "reader-property",
            "Of the reader: parse.key, parse.headers, ignore.error, key.separator, headers.delimiter, "
            "headers.separator, headers.key.separator, null.marker.",
            "prop",
        ),
        Option("reader-config", "A file with properties of the reader.", "config file"),
        Option("command-property", "A property of the producer.", "producer_prop"),
        Option("command-config", "A file with properties of the producer.", "config file"),
        Option("producer-property", "Deprecated: --command-property.", "producer_prop"),
        Option("producer.config", "Deprecated: --command-config.", "config file"),
        HELP,
        VERSION,
    ],
    old={
        "broker-list": Old("--bootstrap-server", "bootstrap-server"),
        "zookeeper": ZOOKEEPER,
        "request-timeout": Old("--request-timeout-ms", "request-timeout-ms"),
    },
)

REPLACED = {
    "producer-property": "command-property",
    "producer.config": "command-config",
    "property": "reader-property",
}
"""Deprecated options and their replacements, in the order of Java's warnings."""
CHECKED = ("producer.config", "producer-property", "property")
"""The deprecated options in the order in which Java checks for their replacements."""
MERGED = (
    ("linger.ms", "timeout", "1000"),
    ("acks", "request-required-acks", "-1"),
    ("request.timeout.ms", "request-timeout-ms", None),
    ("retry.backoff.ms", "retry-backoff-ms", None),
    ("buffer.memory", "max-memory-bytes", None),
    ("batch.size", "batch-size", "16384"),
    ("batch.size", "max-partition-memory-bytes", None),
    ("metadata.max.age.ms", "metadata-expiry-ms", None),
    ("max.block.ms", "max-block-ms", "60000"),
)
"""Properties that options say, with their defaults where those are not the producer's own."""
INTEGERS = (
    "batch-size",
    "message-send-max-retries",
    "retry-backoff-ms",
    "timeout",
    "request-timeout-ms",
    "metadata-expiry-ms",
    "max-block-ms",
    "max-memory-bytes",
    "max-partition-memory-bytes",
    "socket-buffer-size",
)


def main(arguments: Sequence[str]) -> int:
    """Read the arguments, and send what stdin has."""
    from millstream.kafka_tools.console.line_reader import LineReader, StdinSource

    try:
        values = _read(arguments)
        reader = LineReader(_reader_properties(values))
        properties = _producer_properties(values)
        source = StdinSource(reader)
        run = _Run(values.text("topic") or "", source, properties, sync=values.has("sync"))
        cluster = Cluster.create(values.text("bootstrap-server") or "", None, properties)
        cluster.run(
            run.all,
            allow_auto_topic_creation=True,
            missing_topic_wait_ms=int(properties["max.block.ms"]),
        )
    except JavaError as error:
        tell(str(error) if error.java_class.startswith("joptsimple") else error.full_text)
        tell_notes(error)
        return 1
    return 0


def _read(arguments: Sequence[str]) -> OptionValues:
    values = read_or_usage(OPTIONS, arguments)
    values.required("topic")
    for former in CHECKED:
        if values.has(former) and values.has(REPLACED[former]):
            values.usage(f"Options --{REPLACED[former]} and --{former} cannot be specified together.")
    _tell_replaced(values)
    check_servers(values)
    for name in INTEGERS:
        values.integer(name)
    return values


def _tell_replaced(values: OptionValues) -> None:
    """Print a warning for each deprecated option to stdout, as Java does."""
    for former, today in REPLACED.items():
        if values.has(former):
            print(
                f"Warning: --{former} is deprecated and will be removed in a future version. "
                f"Use --{today} instead."
            )
    if values.has("max-partition-memory-bytes"):
        print(
            "Warning: --max-partition-memory-bytes is deprecated and will be removed in Apache Kafka 5.0. "
            "Use --batch-size instead."
        )


def _reader_properties(values: OptionValues) -> Mapping[str, str]:
    name = values.text("line-reader") or LINE_READER
    if name not in (LINE_READER, OLD_LINE_READER):
        error = JavaError("java.lang.ClassNotFoundException", name)
        error.add_note(f"note: --line-reader can only be {LINE_READER}: there is no Java here")
        raise error
    return {
        **read_texts(values.text("reader-config"), "--reader-config"),
        **key_values(values.texts("reader-property") or values.texts("property")),
    }


def _producer_properties(values: OptionValues) -> dict[str, str]:
    from kafka_client.properties import PRODUCER

    properties = {
        **read_client_properties(values.text("command-config") or values.text("producer.config")),
        **key_values(values.texts("command-property") or values.texts("producer-property")),
    }
    tell_without_effect(properties, *PRODUCER, "max.block.ms")
    codec = values.text("compression-codec") or ("gzip" if values.has("compression-codec") else "none")
    properties["compression.type"] = codec
    properties.setdefault("client.id", "console-producer")
    for key, option, default in MERGED:
        merge(properties, key, values.text(option), default)
    return properties


class _Run:
    """From stdin to the topic."""

    def __init__(self, topic: str, source: StdinSource, properties: Mapping[str, str], *, sync: bool) -> None:
        self._topic = topic
        self._source = source
        self._properties = properties
        self._sync = sync
        self._sender: Sender | None = None

    async def all(self, session: Session) -> None:
        """Send all records. Raises JavaError for an error that ends the tool."""
        from kafka_client import BatchProducer
        from kafka_client.properties import ClientProperties
        from millstream.commands.produce.producing import chunks, within

        settings = ClientProperties.layered(self._properties, "").producer()
        producer = await BatchProducer(session.client, **settings).start()
        try:
            async for chunk in chunks(self._source):
                await self._send(session, producer, chunk)
                if chunk.error is not None:
                    raise JavaError(f"{COMMON}.KafkaException", chunk.error)
            await producer.flush()
        finally:
            # Also what was read before an error, or before Ctrl-C.
            await within(producer.flush(), FLUSH_SECONDS)
            self._tell_failure()
            await producer.close(timeout_ms=0)

    async def _send(self, session: Session, producer: BatchProducer, chunk: Chunk) -> None:
        """Queue a chunk's records. With `--sync`, send one at a time and wait until it is acknowledged."""
        from dataclasses import replace

        from kafka_client.errors import MillstreamError

        parts = [replace(chunk, records=[record]) for record in chunk.records] if self._sync else [chunk]
        for part in parts:
            try:
                sender = await self._opened(session, producer)
                await sender.send(part)
                if self._sync:
                    await producer.flush()
                    if sender.failure is not None:
                        raise sender.failure
            except MillstreamError as error:
                if self._sync:
                    raise _execution_error(error, self._topic, self._properties["max.block.ms"]) from error
                self._tell_error(error)
                if self._sender is not None:
                    self._sender.failure = None

    async def _opened(self, session: Session, producer: BatchProducer) -> Sender:
        """Return the sender, created on the first call once the topic exists.

        The metadata request creates the topic if the broker allows it.
        """
        from kafka_client.properties import ClientProperties
        from millstream.commands.produce.sending import MAX_REQUEST_SIZE, Sender

        if self._sender is None:
            count = (await session.client.topic(self._topic)).partition_count
            limit = ClientProperties.layered(self._properties, "").producer().get("max_request_size")
            self._sender = Sender(producer, self._topic, count, None, limit or MAX_REQUEST_SIZE)
        return self._sender

    def _tell_failure(self) -> None:
        if not self._sync and self._sender is not None and self._sender.failure is not None:
            self._tell_error(self._sender.failure)

    def _tell_error(self, error: Exception) -> None:
        log_error(f"Error when sending message to topic {self._topic}: {error}")


def _execution_error(error: Exception, topic: str, waited_ms: str) -> JavaError:
    """Return the exception that Java's `send(…).get()` throws for this error."""
    from kafka_client.errors import ErrorCode, KafkaError
    from millstream.kafka_tools.java.java_errors import java_error, timed_out

    cause = java_error(error, "send")
    if isinstance(error, KafkaError) and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        cause = timed_out(f"Topic {topic} not present in metadata after {waited_ms} ms.")
    return JavaError("java.util.concurrent.ExecutionException", cause.full_text)


app = tool(OPTIONS, main)
