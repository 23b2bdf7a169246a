"""``python -m logd``: the same as ``millstream logd``."""

from logd.cli import app

app(prog_name="logd")
