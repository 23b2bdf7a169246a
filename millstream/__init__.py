"""The `millstream` command: a table of subcommands, filled by entry points, and the demo."""
