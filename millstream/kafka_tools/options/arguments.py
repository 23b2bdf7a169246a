"""Arguments as most of Kafka's tools read them: by the rules of joptsimple, with its error texts.

Options are `--option value` or `--option=value`, with one dash or two. Values may begin with a dash, options
may be repeated, and some options may have no value. A former option (`Old`) is replaced by the current one,
ignored or refused: a note on stderr says so.

argparse does not fit: it accepts no value that begins with a dash, and keeps only the last of repeated
options. The few tools that use argparse4j in Java, a port of argparse, use argparse here. The tools check
which options go together (`OptionValues.required`, `OptionValues.excluded`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from millstream.kafka_tools.java.java_errors import JavaError
from millstream.kafka_tools.java.java_integers import parse_integer
from millstream.kafka_tools.options.option import Option
from millstream.kafka_tools.options.usage import usage


@dataclass(frozen=True, slots=True)
class Old:
    """An option that Kafka's tools no longer have: refused unless it `means` a current one or is ignored."""

    instead: str
    """The option to use today."""
    means: str | None = None
    """The current option that replaces the former one."""
    is_ignored: bool = False
    has_value: bool = True
    """True if an ignored option has a value."""


class Ended(Exception):
    """The end of the tool: `message` goes to stderr unless it is None, followed by the usage if `usage`."""

    def __init__(self, status: int, message: str | None = None, *, usage: bool = False) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message
        self.usage = usage


ZOOKEEPER = Old("--bootstrap-server HOST:PORT, the address of a broker")


@dataclass(frozen=True)
class Options:
    """The options of a tool."""

    purpose: str
    """The first line of `--help`."""
    options: Sequence[Option]
    abbreviations: bool = False
    """True if a name may be shortened as long as it is unambiguous."""
    old: Mapping[str, Old] = field(default_factory=dict)

    def parse(self, arguments: Sequence[str], tell: Callable[[str], None]) -> OptionValues:
        """Parse the arguments. Raises JavaError if joptsimple would throw. `tell` receives notes."""
        return _Reading(self, arguments, tell).read()

    def usage(self) -> str:
        """Return the table of options, in joptsimple's columns."""
        return usage(self.options)

    def find(self, name: str) -> Option | None:
        """Return the option of that name, or None."""
        for option in self.options:
            if name in option.names:
                return option
        if self.abbreviations:
            near = [
                option for option in self.options for each in option.names if name and each.startswith(name)
            ]
            if len(near) == 1:
                return near[0]
        return None


class OptionValues:
    """The options on the command line with their values, and the arguments that are no options."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._values: dict[str, list[str]] = {}
        self.others: list[str] = []
        self.order: list[str] = []
        """The names of the options in the order of the command line, with repetitions."""

    def add(self, option: Option, value: str | None) -> None:
        """Add an option, with its value if it has one."""
        self.order.append(option.name)
        values = self._values.setdefault(option.name, [])
        if value is not None:
            values += [value] if option.separator is None else value.split(option.separator)

    def has(self, *names: str) -> bool:
        """Return True if any of the options is present."""
        return any(name in self._values for name in names)

    def count(self, *names: str) -> int:
        """Return how many of the options are present."""
        return sum(name in self._values for name in names)

    def texts(self, name: str) -> list[str]:
        """Return all values of an option."""
        return self._values.get(name, [])

    def text(self, name: str) -> str | None:
        """Return the value of an option, or None. Raises JavaError if it has several."""
        values = self.texts(name)
        if len(values) > 1:
            shown = "/".join(self._option(name).names)
            raise option_error(
                "MultipleArgumentsForOption",
                f"Found multiple arguments for option {shown}, but you asked for only one",
            )
        return values[0] if values else None

    def integer(self, name: str, bits: int = 32) -> int | None:
        """Return the value, an integer of `bits` bits, or None. Raises JavaError if it is not one."""
        text = self.text(name)
        if text is None:
            return None
        try:
            return parse_integer(text, bits)
        except ValueError:
            shown = "/".join(self._option(name).names)
            raise option_error(
                "OptionArgumentConversion", f"Cannot parse argument '{text}' of option {shown}"
            ) from None

    def required(self, *names: str) -> None:
        """End with Java's message unless all of the options are present."""
        for name in names:
            if not self.has(name):
                self.usage(f'Missing required argument "{self._option(name)}"')

    def excluded(self, name: str, *others: str) -> None:
        """End with Java's message if an option is present together with one of the others."""
        for other in others:
            if self.has(name) and self.has(other):
                self.usage(
                    f'Option "{self._option(name)}" can\'t be used with option "{self._option(other)}"'
                )

    def usage(self, message: str) -> NoReturn:
        """End with a message and the usage."""
        raise Ended(1, message, usage=True)

    def _option(self, name: str) -> Option:
        option = self._options.find(name)
        assert option is not None, name
        return option


class _Reading:
    """A parser of one command line."""

    def __init__(self, options: Options, arguments: Sequence[str], tell: Callable[[str], None]) -> None:
        self._options = options
        self._rest = list(arguments)
        self._tell = tell
        self._result = OptionValues(options)

    def read(self) -> OptionValues:
        while self._rest:
            argument = self._rest.pop(0)
            if argument == "--":
                self._result.others += self._rest
                break
            if argument.startswith("--"):
                self._long(argument[2:])
            elif argument.startswith("-") and argument != "-":
                self._short(argument[1:])
            else:
                self._result.others.append(argument)
        self._check()
        return self._result

    def _check(self) -> None:
        by_name = sorted(self._options.options, key=lambda option: option.names)
        missing = [option for option in by_name if option.required and not self._result.has(option.name)]
        if missing and not self._result.has("help", "version"):
            shown = ", ".join("/".join(option.names) for option in missing)
            raise option_error("MissingRequiredOptions", f"Missing required option(s) [{shown}]")
        alone = [
            option
            for option in by_name
            if option.available_with
            and self._result.has(option.name)
            and not self._result.has(*option.available_with)
        ]
        if alone and not self._result.has("help", "version"):
            shown = ", ".join("/".join(option.names) for option in alone)
            raise option_error(
                "UnavailableOption",
                f"Option(s) [{shown}] are unavailable given other options on the command line",
            )

    def _long(self, text: str) -> None:
        name, _, value = text.partition("=")
        if (option := self._find(name)) is None:
            raise unrecognized(name)
        self._take(option, value)

    def _short(self, text: str) -> None:
        name, _, value = text.partition("=")
        if (option := self._find(name)) is not None:
            return self._take(option, value)
        for at, letter in enumerate(text):
            if (option := self._options.find(letter)) is None:
                raise unrecognized(letter)
            self._take(option, text[at + 1 :] if option.value is not None else "")
            if option.value is not None:
                break

    def _find(self, name: str) -> Option | None:
        if (option := self._options.find(name)) is not None:
            return option
        if (old := self._options.old.get(name)) is None:
            return None
        if old.is_ignored:
            self._tell(f"note: --{name} is no more: {old.instead}")
            return Option(name, value="ignored" if old.has_value else None)
        if old.means is None:
            raise unrecognized(name, f"note: --{name} is no more: give {old.instead}")
        self._tell(f"note: --{name} is {old.instead} today")
        return self._options.find(old.means)

    def _take(self, option: Option, value: str) -> None:
        if option.value is None:
            return self._add(option, None)
        if value:
            return self._add(option, value)
        if option.optional:
            follows = self._rest and not (self._rest[0].startswith("-") and self._rest[0] != "-")
            return self._add(option, self._rest.pop(0) if follows else None)
        if not self._rest:
            shown = "/".join(option.names)
            raise option_error("OptionMissingRequiredArgument", f"Option {shown} requires an argument")
        self._add(option, self._rest.pop(0))

    def _add(self, option: Option, value: str | None) -> None:
        if option.name not in self._options.old:
            self._result.add(option, value)


def option_error(name: str, message: str) -> JavaError:
    """Return joptsimple's exception of this class, `name` without its suffix "Exception"."""
    return JavaError(f"joptsimple.{name}Exception", message)


def unrecognized(name: str, note: str | None = None) -> JavaError:
    """Return the exception for an unknown option."""
    error = option_error("UnrecognizedOption", f"{name} is not a recognized option")
    if note is not None:
        error.add_note(note)
    return error


def names(options: Sequence[Option]) -> Iterator[str]:
    """Yield every name of the options, with its dashes."""
    for option in options:
        for name in option.names:
            yield f"--{name}" if len(name) > 1 else f"-{name}"
