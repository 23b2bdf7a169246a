"""Arguments as a few of Kafka's tools read them: with argparse4j, which is modelled on Python's argparse.

What differs: which error comes first of several, the errors' words, and that `--help` ends with 1.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from millstream.kafka_tools.java.java_integers import parse_integer
from millstream.kafka_tools.options.arguments import Ended

T = TypeVar("T")


class Parser(argparse.ArgumentParser):
    """A tool's parser, or that of one of its commands.

    `must`: options that are required; `one_of`: groups of which one option is.
    """

    def __init__(self, prog: str, description: str | None = None, **settings: Any) -> None:
        super().__init__(prog=prog, description=description, **settings)
        self.title = prog.partition(" ")[0]
        self.must: list[argparse.Action] = []
        self.one_of: list[list[argparse.Action]] = []

    def require(self, *names: str, **settings: Any) -> None:
        """Add an option that has to be given."""
        self.must.append(self.add_argument(*names, **settings))

    def require_one(self, *options: tuple[tuple[str, ...], dict[str, Any]]) -> None:
        """Add options, given as the arguments of `add_argument`, of which just one has to be given."""
        group = self.add_mutually_exclusive_group()
        self.one_of.append([group.add_argument(*names, **settings) for names, settings in options])

    def read(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse the arguments. Raises Ended, with the usage and Java's message, for invalid ones."""
        namespace = argparse.Namespace()
        _, unknown = self.parse_known_args(arguments, namespace)
        if unknown:
            self.error(f"unrecognized arguments: '{unknown[0]}'")
        return namespace

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does. Report missing arguments unless there are unknown ones."""
        namespace, unknown = super().parse_known_args(args, namespace)
        if not unknown and not getattr(namespace, argparse._UNRECOGNIZED_ARGS_ATTR, None):
            if getattr(namespace, "command", "") is None:
                self.error("too few arguments")
            # Java reports the last of several missing arguments.
            for action in reversed(self.must):
                if getattr(namespace, action.dest, None) is None:
                    self.error(f"argument {'/'.join(action.option_strings)} is required")
            for actions in self.one_of:
                if all(getattr(namespace, each.dest) is each.default for each in actions):
                    shown = " ".join("/".join(action.option_strings) for action in actions)
                    self.error(f"one of the arguments {shown} is required")
        return namespace, unknown

    def error(self, message: str) -> NoReturn:
        """End with a message below the usage."""
        for name in ("command", "COMMAND"):
            message = message.removeprefix(f"argument {name}: ")
        raise Ended(1, f"{self.format_usage()}{self.title}: error: {message}")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """End the tool after `--help` has printed the help."""
        raise Ended(1)


def integer(text: str) -> int:
    """Parse a Java Integer. Raises ArgumentTypeError."""
    return _converted(text, "Integer", lambda: parse_integer(text))


def long(text: str) -> int:
    """Parse a Java Long. Raises ArgumentTypeError."""
    return _converted(text, "Long", lambda: parse_integer(text, 64))


def short(text: str) -> int:
    """Parse a Java Short. Raises ArgumentTypeError."""
    return _converted(text, "Short", lambda: parse_integer(text, 16))


def double(text: str) -> float:
    """Parse a Java Double. Raises ArgumentTypeError."""
    return _converted(text, "Double", lambda: float(text))


def _converted(text: str, java_type: str, convert: Callable[[], T]) -> T:
    try:
        return convert()
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"could not convert '{text}' to {java_type} (For input string: \"{text}\")"
        ) from None
