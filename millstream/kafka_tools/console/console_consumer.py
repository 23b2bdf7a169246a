"""`kafka-console-consumer`: records of topics on stdout, as ConsoleConsumer has them.

As in Java, an error while the tool waits for records is printed, and the exit status is 0.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.kafka_tools.java.java_errors import COMMON, JavaError
from millstream.kafka_tools.java.java_integers import parse_long
from millstream.kafka_tools.log import log_error
from millstream.kafka_tools.options.arguments import ZOOKEEPER, Ended, Old, Options, OptionValues
from millstream.kafka_tools.options.option import Option
from millstream.kafka_tools.options.properties import key_values, merge, read_texts, tell_without_effect
from millstream.kafka_tools.running import (
    HELP,
    VERSION,
    Cluster,
    read_client_properties,
    read_or_usage,
    tell,
    tool,
)

if TYPE_CHECKING:
    from millstream.commands.consume.columns import RecordPrinter
    from millstream.commands.consume.reading import Reading
    from millstream.kafka_tools.console.console_source import ConsoleSource
    from millstream.kafka_tools.console.message_formatter import TimestampTypes
    from millstream.terminal.session import Session

EARLIEST = -2
LATEST = -1
GROUPS = 100_000
"""How many names are tried for groups without `--group`."""
REPLACED = (("consumer-property", "command-property"), ("consumer.config", "command-config"))
"""Options that are deprecated, and those to give instead."""
FOREVER_MS = (1 << 31) - 1
"""How long to wait for a topic that does not exist: `--timeout-ms` ends the wait."""

OPTIONS = Options(
    "This tool helps to read data from Kafka topics and outputs it to standard output.",
    [
        Option("topic", "The topic to read.", "topic"),
        Option("include", "Read every topic whose whole name matches.", "Java regex (String)"),
        Option("partition", "Read this partition only, from its end unless --offset says.", "partition"),
        Option("offset", "Where to begin: a number, earliest or latest.", "consume offset"),
        Option("command-property", "A property of the consumer.", "consumer_prop"),
        Option("command-config", "A file with properties of the consumer.", "config file"),
        Option("consumer-property", "Deprecated: --command-property.", "consumer_prop"),
        Option("consumer.config", "Deprecated: --command-config.", "config file"),
        Option("formatter", "The class that prints records.", "class"),
        Option("property", "Deprecated: --formatter-property.", "prop"),
        Option(
            "formatter-property",
            "Of the formatter: print.timestamp, print.key, print.offset, print.epoch, print.partition, "
            "print.headers, print.value, key.separator, line.separator, headers.separator, null.literal, "
            "key.deserializer, value.deserializer, headers.deserializer.",
            "prop",
        ),
        Option("formatter-config", "A file with properties of the formatter.", "config file"),
        Option("from-beginning", "Begin with the first record where the group has no offset."),
        Option("max-messages", "End after so many records.", "num_messages"),
        Option("timeout-ms", "End when for so long no record came.", "timeout_ms"),
        Option("skip-message-on-error", "Leave out a record that cannot be shown, instead of ending."),
        Option("bootstrap-server", "REQUIRED: The servers to connect to.", "server to connect to"),
        Option("key-deserializer", "The class that reads keys.", "deserializer for key"),
        Option("value-deserializer", "The class that reads values.", "deserializer for values"),
        Option("enable-systest-events", "Say shutdown_complete in the end."),
        Option("isolation-level", "read_committed leaves out what was not committed.", "String"),
        Option("group", "Read as a member of this group.", "consumer group id"),
        HELP,
        VERSION,
    ],
    old={
        "whitelist": Old("--include", "include"),
        "zookeeper": ZOOKEEPER,
        "new-consumer": Old("there is no other one", is_ignored=True, has_value=False),
        "broker-list": Old("--bootstrap-server", "bootstrap-server"),
    },
)


def main(arguments: Sequence[str]) -> int:
    """Read the arguments, and print the records."""
    values = read_or_usage(OPTIONS, arguments)
    try:
        _check(values)
        plan = _plan(values)
    except JavaError as error:
        raise Ended(1, f'Exception in thread "main" {error.full_text}') from None
    run = _Run(values, plan)
    try:
        _check_pattern(values)
        cluster = Cluster.create(values.text("bootstrap-server") or "", None, plan.properties)
        cluster.run(
            run.all,
            allow_auto_topic_creation=plan.properties.get("allow.auto.create.topics", "true") == "true",
            missing_topic_wait_ms=FOREVER_MS,
        )
    except JavaError as error:
        log_error(f"Unknown error when running consumer: {error.full_text}")
        return 1
    return run.status


def _check(values: OptionValues) -> None:
    """End with Java's message if options contradict each other."""
    if values.count("topic", "include") != 1:
        values.usage("Exactly one of the following arguments is required: [topic], [include]")
    if values.has("partition"):
        values.integer("partition")
        if not values.has("topic"):
            values.usage("The topic is required when partition is specified.")
        if values.has("from-beginning") and values.has("offset"):
            values.usage("Options from-beginning and offset cannot be specified together.")
    elif values.has("offset"):
        values.usage("The partition is required when offset is specified.")
    values.required("bootstrap-server")
    for former, today in REPLACED:
        _exclude(values, former, today)
    for former, today in REPLACED:
        _tell_replaced(values, former, today)


def _exclude(values: OptionValues, former: str, today: str) -> None:
    if values.has(former) and values.has(today):
        values.usage(f"Options --{former} and --{today} cannot be specified together.")


def _tell_replaced(values: OptionValues, former: str, today: str) -> None:
    """Print a deprecation warning to stdout, as Java does, if the former option is present."""
    if values.has(former):
        print(
            f"Option --{former} is deprecated and will be removed in a future version. Use --{today} instead."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """Which records to read and how to print them. `limit` and `timeout_ms` are None if there is no limit."""

    properties: Mapping[str, str]
    group: str | None
    commits: bool
    offset: int
    timeout_ms: int | None
    limit: int | None
    types: TimestampTypes
    formatter: RecordPrinter


def _plan(values: OptionValues) -> _Plan:
    from millstream.kafka_tools.console.message_formatter import TimestampTypes

    file = read_client_properties(values.text("command-config") or values.text("consumer.config"))
    extra = key_values(values.texts("command-property") or values.texts("consumer-property"))
    group = _group(values, file, extra)
    properties = _consumer_properties(values, {**file, **extra})
    commits = properties.get("enable.auto.commit", "true").lower() == "true" and group is not None
    types = TimestampTypes()
    timeout_ms = values.integer("timeout-ms", 64)
    return _Plan(
        properties=properties,
        group=group or f"console-consumer-{random.randrange(GROUPS)}",
        commits=commits,
        offset=_offset(values),
        timeout_ms=None if timeout_ms is None or timeout_ms < 0 else timeout_ms,
        limit=_limit(values),
        types=types,
        formatter=_formatter(values, types),
    )


def _check_pattern(values: OptionValues) -> None:
    try:
        re.compile(values.text("include") or "")
    except re.error as error:
        raise JavaError("java.util.regex.PatternSyntaxException", str(error)) from None


def _limit(values: OptionValues) -> int | None:
    """Return `--max-messages`, or None. An invalid number ends the tool with Java's late message."""
    try:
        limit = values.integer("max-messages")
    except JavaError as error:
        log_error(f"Unknown error when running consumer: {error.full_text}")
        raise Ended(1, "Processed a total of 0 messages") from None
    return None if limit is None or limit == -1 else max(limit, 0)


def _group(values: OptionValues, file: Mapping[str, str], extra: Mapping[str, str]) -> str | None:
    places = (values.text("group"), file.get("group.id"), extra.get("group.id"))
    groups = list(dict.fromkeys(name for name in places if name is not None))
    if len(groups) > 1:
        listed = ", ".join(f"'{name}'" for name in groups)
        values.usage(
            "The group ids provided in different places (directly using '--group', via "
            "'--consumer-property', or via '--consumer.config') do not match. "
            f"Detected group ids: {listed}"
        )
    if groups and values.has("partition"):
        values.usage("Options group and partition cannot be specified together.")
    return groups[0] if groups else None


def _consumer_properties(values: OptionValues, properties: dict[str, str]) -> dict[str, str]:
    from kafka_client.properties import CONSUMER

    tell_without_effect(properties, *CONSUMER, "group.id", "enable.auto.commit", "allow.auto.create.topics")
    reset = properties.get("auto.offset.reset")
    if values.has("from-beginning") and reset not in (None, "earliest"):
        raise Ended(
            1,
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', "
            "please remove one option",
        )
    if reset is None:
        properties["auto.offset.reset"] = "earliest" if values.has("from-beginning") else "latest"
    properties.setdefault("client.id", "console-consumer")
    merge(properties, "isolation.level", values.text("isolation-level"), "read_uncommitted")
    return properties


def _offset(values: OptionValues) -> int:
    text = values.text("offset")
    if text is None:
        return EARLIEST if values.has("from-beginning") else LATEST
    if (named := {"earliest": EARLIEST, "latest": LATEST}.get(text.lower())) is not None:
        return named
    try:
        offset = parse_long(text)
    except ValueError:
        offset = -1
    if offset < 0:
        values.usage(
            f"The provided offset value '{text}' is incorrect. Valid values are 'earliest', 'latest', or a "
            "non-negative long."
        )
    return offset


def _formatter(values: OptionValues, types: TimestampTypes) -> RecordPrinter:
    from millstream.kafka_tools.console.message_formatter import DEFAULT, OLD, find_formatter

    name = values.text("formatter") or DEFAULT
    if name in OLD:
        tell(f"note: --formatter {name} is {OLD[name]} today")
        name = OLD[name]
    _exclude(values, "property", "formatter-property")
    _tell_replaced(values, "property", "formatter-property")
    properties = read_texts(values.text("formatter-config"), "--formatter-config")
    for option, key in (
        ("key-deserializer", "key.deserializer"),
        ("value-deserializer", "value.deserializer"),
    ):
        if text := values.text(option):
            properties[key] = text
    properties |= key_values(values.texts("formatter-property") or values.texts("property"))
    formatter = find_formatter(name, properties, types)
    if formatter is None:
        values.usage(name)
    return formatter


class _Run:
    """A run of the tool: it consumes records and prints them."""

    def __init__(self, values: OptionValues, plan: _Plan) -> None:
        self._values = values
        self._plan = plan
        self.status = 0

    async def all(self, session: Session) -> None:
        """Read and print records until the end. The number of records is always printed."""
        from kafka_client import Consumer
        from kafka_client.errors import MillstreamError
        from kafka_client.properties import ClientProperties
        from millstream.commands.consume.reading import Reading
        from millstream.kafka_tools.console.console_source import ConsoleSource

        plan = self._plan
        settings = ClientProperties.layered(plan.properties, "").consumer()
        group = None if self._values.has("partition") else plan.group
        consumer = Consumer(session.client, group, **settings)
        source = ConsoleSource(session, consumer, plan.types, commits=plan.commits)
        reading = Reading(
            source,
            plan.formatter,
            sys.stdout.buffer,
            log_error,
            limit=plan.limit,
            idle_ms=plan.timeout_ms,
            skip_errors=self._values.has("skip-message-on-error"),
            counts_skipped=True,
        )
        try:
            await self._begin(source)
            sys.stdout.flush()
            await self._read(reading)
        except MillstreamError as error:
            log_error(f"Error processing message, terminating consumer process: {error}")
        finally:
            tell(f"Processed a total of {reading.printed + reading.skipped + self.status} messages")
            await source.close()
            if self._values.has("enable-systest-events"):
                print("shutdown_complete")

    async def _begin(self, source: ConsoleSource) -> None:
        from kafka_client import TopicPartition

        topic, number = self._values.text("topic"), self._values.integer("partition")
        if topic is not None and number is not None:
            return await source.assign(TopicPartition(topic, number), self._plan.offset)
        await source.subscribe(topic or re.compile(self._values.text("include") or ""))

    async def _read(self, reading: Reading) -> None:
        from millstream.data_types.data_type import WrongData
        from millstream.terminal.progress import Progress
        from millstream.terminal.status import Partly

        limit = self._plan.limit
        try:
            await reading.run(Progress(None))
            if limit is None or reading.printed + reading.skipped < limit:
                timeout = f"{COMMON}.errors.TimeoutException"
                log_error(f"Error processing message, terminating consumer process: {timeout}")
        except WrongData as error:
            self.status = 1
            log_error(f"Unknown error when running consumer: {error.__cause__ or error}")
        except Partly:
            pass  # The skipped records were already reported.
        except BrokenPipeError:
            tell("Unable to write to standard out, closing consumer.")
            raise


app = tool(OPTIONS, main)
