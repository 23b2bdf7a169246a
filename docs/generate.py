"""Write the two reference pages that are made from declarations: `make docs`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

from connect.config import Config, SinkConfig, SourceConfig, document
from connect.converters.json import JsonConverterConfig
from connect.runtime import WorkerConfig, connector_class
from connect.runtime.plugins import GROUP
from logd.config import reference

FOLDER = Path(__file__).parent

_MADE = "<!-- Made by `make docs`: change the declarations, not this page. -->"


def pages() -> dict[str, str]:
    """File name to text."""
    return {"logd-settings.md": logd_settings(), "connectors.md": "\n".join(connectors())}


def logd_settings() -> str:
    """What `python -m logd.config.reference` prints, under a heading."""
    return f"""\
{_MADE}

# logd: all settings

Give them in a file, `millstream logd --config server.properties`, or one by one, `--override key=value`.
A topic's own setting goes before the broker's: `log.segment.bytes` is for topics without a `segment.bytes`
of their own.

{reference.markdown()}"""


def connectors() -> Iterator[str]:
    """The worker, what all connectors share, then the plugins of this distribution."""
    yield f"{_MADE}\n\n# Connect: all settings\n"
    yield "`millstream connect config PLUGIN` prints a plugin's. See also [connect.md](connect.md).\n"
    yield from _section("The worker", WorkerConfig)
    yield from _section("JsonConverter", JsonConverterConfig)
    yield from _section("Every source", SourceConfig)
    yield from _section("Every sink", SinkConfig)
    points = distribution("millstream").entry_points.select(group=GROUP)
    for name in sorted(points.names):
        yield from _section(name, connector_class(name).CONFIG)


def _section(title: str, declaration: type[Config]) -> Iterator[str]:
    yield f"## {title}\n"
    yield document(declaration)


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
