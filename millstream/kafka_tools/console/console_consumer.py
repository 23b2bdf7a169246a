"""`kafka-console-consumer`: records of topics on stdout, as ConsoleConsumer has them.

As in Java, what goes wrong while records are waited for is told, and the tool ends with 0.
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
from millstream.kafka_tools.options.arguments import ZOOKEEPER, Ended, Given, Old, Options
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
"""So many names there are for groups that nobody named."""
REPLACED = (("consumer-property", "command-property"), ("consumer.config", "command-config"))
"""Options that are deprecated, and those to give instead."""
FOREVER_MS = (1 << 31) - 1
"""A topic that is not there is waited for, as --timeout-ms says."""

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
    """Read the arguments, and print what comes."""
    given = read_or_usage(OPTIONS, arguments)
    try:
        _check(given)
        wanted = _wanted(given)
    except JavaError as error:
        raise Ended(1, f'Exception in thread "main" {error.told}') from None
    run = _Run(given, wanted)
    try:
        _check_pattern(given)
        cluster = Cluster.create(given.text("bootstrap-server") or "", None, wanted.properties)
        cluster.run(
            run.all,
            allow_auto_topic_creation=wanted.properties.get("allow.auto.create.topics", "true") == "true",
            missing_topic_wait_ms=FOREVER_MS,
        )
    except JavaError as error:
        log_error(f"Unknown error when running consumer: {error.told}")
        return 1
    return run.status


def _check(given: Given) -> None:
    """End with Java's words for what does not go together."""
    if given.count("topic", "include") != 1:
        given.usage("Exactly one of the following arguments is required: [topic], [include]")
    if given.has("partition"):
        given.integer("partition")
        if not given.has("topic"):
            given.usage("The topic is required when partition is specified.")
        if given.has("from-beginning") and given.has("offset"):
            given.usage("Options from-beginning and offset cannot be specified together.")
    elif given.has("offset"):
        given.usage("The partition is required when offset is specified.")
    given.required("bootstrap-server")
    for former, today in REPLACED:
        _exclude(given, former, today)
    for former, today in REPLACED:
        _tell_replaced(given, former, today)


def _exclude(given: Given, former: str, today: str) -> None:
    if given.has(former) and given.has(today):
        given.usage(f"Options --{former} and --{today} cannot be specified together.")


def _tell_replaced(given: Given, former: str, today: str) -> None:
    """On stdout, as Java does."""
    if given.has(former):
        print(
            f"Option --{former} is deprecated and will be removed in a future version. Use --{today} instead."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What to read, and how to print it. `limit`: None for no limit, as for `timeout_ms`."""

    properties: Mapping[str, str]
    group: str | None
    commits: bool
    offset: int
    timeout_ms: int | None
    limit: int | None
    types: TimestampTypes
    formatter: RecordPrinter


def _wanted(given: Given) -> _Wanted:
    from millstream.kafka_tools.console.message_formatter import TimestampTypes

    file = read_client_properties(given.text("command-config") or given.text("consumer.config"))
    extra = key_values(given.texts("command-property") or given.texts("consumer-property"))
    group = _group(given, file, extra)
    properties = _consumer_properties(given, {**file, **extra})
    commits = properties.get("enable.auto.commit", "true").lower() == "true" and group is not None
    types = TimestampTypes()
    timeout_ms = given.integer("timeout-ms", 64)
    return _Wanted(
        properties=properties,
        group=group or f"console-consumer-{random.randrange(GROUPS)}",
        commits=commits,
        offset=_offset(given),
        timeout_ms=None if timeout_ms is None or timeout_ms < 0 else timeout_ms,
        limit=_limit(given),
        types=types,
        formatter=_formatter(given, types),
    )


def _check_pattern(given: Given) -> None:
    try:
        re.compile(given.text("include") or "")
    except re.error as error:
        raise JavaError("java.util.regex.PatternSyntaxException", str(error)) from None


def _limit(given: Given) -> int | None:
    """Java finds out late that it is no number."""
    try:
        limit = given.integer("max-messages")
    except JavaError as error:
        log_error(f"Unknown error when running consumer: {error.told}")
        raise Ended(1, "Processed a total of 0 messages") from None
    return None if limit is None or limit == -1 else max(limit, 0)


def _group(given: Given, file: Mapping[str, str], extra: Mapping[str, str]) -> str | None:
    places = (given.text("group"), file.get("group.id"), extra.get("group.id"))
    found = list(dict.fromkeys(name for name in places if name is not None))
    if len(found) > 1:
        listed = ", ".join(f"'{name}'" for name in found)
        given.usage(
            "The group ids provided in different places (directly using '--group', via "
            "'--consumer-property', or via '--consumer.config') do not match. "
            f"Detected group ids: {listed}"
        )
    if found and given.has("partition"):
        given.usage("Options group and partition cannot be specified together.")
    return found[0] if found else None


def _consumer_properties(given: Given, properties: dict[str, str]) -> dict[str, str]:
    from kafka_client.properties import CONSUMER

    tell_without_effect(properties, *CONSUMER, "group.id", "enable.auto.commit", "allow.auto.create.topics")
    reset = properties.get("auto.offset.reset")
    if given.has("from-beginning") and reset not in (None, "earliest"):
        raise Ended(
            1,
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', "
            "please remove one option",
        )
    if reset is None:
        properties["auto.offset.reset"] = "earliest" if given.has("from-beginning") else "latest"
    properties.setdefault("client.id", "console-consumer")
    merge(properties, "isolation.level", given.text("isolation-level"), "read_uncommitted")
    return properties


def _offset(given: Given) -> int:
    text = given.text("offset")
    if text is None:
        return EARLIEST if given.has("from-beginning") else LATEST
    if (named := {"earliest": EARLIEST, "latest": LATEST}.get(text.lower())) is not None:
        return named
    try:
        offset = parse_long(text)
    except ValueError:
        offset = -1
    if offset < 0:
        given.usage(
            f"The provided offset value '{text}' is incorrect. Valid values are 'earliest', 'latest', or a "
            "non-negative long."
        )
    return offset


def _formatter(given: Given, types: TimestampTypes) -> RecordPrinter:
    from millstream.kafka_tools.console.message_formatter import DEFAULT, OLD, find_formatter

    name = given.text("formatter") or DEFAULT
    if name in OLD:
        tell(f"note: --formatter {name} is {OLD[name]} today")
        name = OLD[name]
    _exclude(given, "property", "formatter-property")
    _tell_replaced(given, "property", "formatter-property")
    properties = read_texts(given.text("formatter-config"), "--formatter-config")
    for option, key in (
        ("key-deserializer", "key.deserializer"),
        ("value-deserializer", "value.deserializer"),
    ):
        if text := given.text(option):
            properties[key] = text
    properties |= key_values(given.texts("formatter-property") or given.texts("property"))
    found = find_formatter(name, properties, types)
    if found is None:
        given.usage(name)
    return found


class _Run:
    """One run of the tool."""

    def __init__(self, given: Given, wanted: _Wanted) -> None:
        self._given = given
        self._wanted = wanted
        self.status = 0

    async def all(self, session: Session) -> None:
        """Read and print until the end; how many records there were is told in any case."""
        from kafka_client import Consumer
        from kafka_client.errors import MillstreamError
        from kafka_client.properties import ClientProperties
        from millstream.commands.consume.reading import Reading
        from millstream.kafka_tools.console.console_source import ConsoleSource

        wanted = self._wanted
        settings = ClientProperties.layered(wanted.properties, "").consumer()
        group = None if self._given.has("partition") else wanted.group
        consumer = Consumer(session.client, group, **settings)
        source = ConsoleSource(session, consumer, wanted.types, commits=wanted.commits)
        reading = Reading(
            source,
            wanted.formatter,
            sys.stdout.buffer,
            log_error,
            limit=wanted.limit,
            idle_ms=wanted.timeout_ms,
            skip_errors=self._given.has("skip-message-on-error"),
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
            if self._given.has("enable-systest-events"):
                print("shutdown_complete")

    async def _begin(self, source: ConsoleSource) -> None:
        from kafka_client import TopicPartition

        topic, number = self._given.text("topic"), self._given.integer("partition")
        if topic is not None and number is not None:
            return await source.assign(TopicPartition(topic, number), self._wanted.offset)
        await source.subscribe(topic or re.compile(self._given.text("include") or ""))

    async def _read(self, reading: Reading) -> None:
        from millstream.data_types.data_type import WrongData
        from millstream.terminal.progress import Progress
        from millstream.terminal.status import Partly

        limit = self._wanted.limit
        try:
            await reading.run(Progress(None))
            if limit is None or reading.printed + reading.skipped < limit:
                timeout = f"{COMMON}.errors.TimeoutException"
                log_error(f"Error processing message, terminating consumer process: {timeout}")
        except WrongData as error:
            self.status = 1
            log_error(f"Unknown error when running consumer: {error.__cause__ or error}")
        except Partly:
            pass  # What was left out is told.
        except BrokenPipeError:
            tell("Unable to write to standard out, closing consumer.")
            raise


app = tool(OPTIONS, main)
