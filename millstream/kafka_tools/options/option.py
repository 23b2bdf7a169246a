"""`Option`: one option of a tool."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a tool. `name`, without dashes, is the one that the tool's code uses."""

    name: str
    help: str = ""
    value: str | None = None
    """The name of the value in `--help`. None if the option has no value."""
    optional: bool = False
    """True if the option may come without its value."""
    required: bool = False
    """True if joptsimple itself, and not the tool, refuses a command line without the option."""
    aliases: tuple[str, ...] = ()
    available_with: tuple[str, ...] = ()
    """Options of which at least one must be present, too."""
    separator: str | None = None
    """The separator of several values in one argument. None if an argument is one value."""

    @property
    def names(self) -> list[str]:
        """All names, in joptsimple's order: names of one letter first."""
        return sorted((self.name, *self.aliases), key=lambda name: (len(name) > 1, name))

    def __str__(self) -> str:
        return f"[{', '.join(self.names)}]"
