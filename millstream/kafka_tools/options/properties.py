"""Properties of the tools: `key=value` options override files, files override defaults."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from millstream.kafka_tools.java.java_errors import JavaError
from millstream.kafka_tools.options.arguments import OptionValues

_HOST_AND_PORT = re.compile(r"(?:[\w\-%.]*://)?\[?[\w\-%.:]*\]?:[0-9]+", re.ASCII)


def key_values(texts: Iterable[str]) -> dict[str, str]:
    """Parse `key=value` texts. A key alone has an empty value."""
    pairs = (text.partition("=") for text in texts)
    return {key: value for key, _, value in pairs}


def read_texts(file: str | None, option: str) -> dict[str, str]:
    """Read the properties of a reader or formatter. Blanks in values are kept.

    Raises JavaError if the file does not exist.
    """
    from kafka_client.java_properties import parse_properties, read_text

    if file is None:
        return {}
    if not Path(file).exists():
        raise JavaError("java.nio.file.NoSuchFileException", file)
    return parse_properties(read_text(Path(file), option), keep_blanks=True)


def merge(properties: dict[str, str], key: str, value: str | None, default: str | None) -> None:
    """Set a property from its option, or from the option's default if it is not set."""
    if value is not None:
        properties[key] = value
    elif key not in properties and default is not None:
        properties[key] = default


def tell_without_effect(properties: Mapping[str, str], *effective: str) -> None:
    """Log the properties that have no effect."""
    from kafka_client.properties import CLIENT, ClientProperties

    ClientProperties.layered(properties, "").tell_rest((*CLIENT, "bootstrap.servers", *effective))


def check_servers(values: OptionValues, name: str = "bootstrap-server") -> None:
    """End with Java's message unless the option has servers of the form host:port."""
    text = values.text(name)
    if text is None or not text.strip():
        values.usage("Error while validating the bootstrap address\n")
    if not all(_HOST_AND_PORT.fullmatch(each) for each in text.split(",")):
        values.usage("Please provide valid host:port like host1:9091,host2:9092\n")
