"""`Option`: one option of a tool."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Option:
    """An option: of the two dashes, the first of its names is what a tool asks for it by."""

    name: str
    help: str = ""
    value: str | None = None
    """What `--help` calls the value; None where there is none."""
    optional: bool = False
    """Whether the value may be left out."""
    required: bool = False
    """Whether joptsimple itself asks for it."""
    aliases: tuple[str, ...] = ()
    available_with: tuple[str, ...] = ()
    """Options of which one must be there as well."""
    separator: str | None = None
    """What stands between several values in one argument."""

    @property
    def names(self) -> list[str]:
        """All names, in joptsimple's order: the short ones first."""
        return sorted((self.name, *self.aliases), key=lambda name: (len(name) > 1, name))

    def __str__(self) -> str:
        return f"[{', '.join(self.names)}]"
