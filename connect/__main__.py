"""``python -m connect``: the same as ``millstream connect``."""

from connect.cli import app

app(prog_name="connect")
