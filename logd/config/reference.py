"""The settings as a Markdown reference, from the declarations that parsing and DescribeConfigs use."""

from __future__ import annotations

from collections.abc import Iterable

from logd.config.broker import BROKER_SETTINGS
from logd.config.inert import INERT_SETTINGS
from logd.config.setting import Setting, format_value
from logd.config.topic import TOPIC_SETTINGS
from logd.config.zookeeper import ZOOKEEPER_SETTINGS


def markdown() -> str:
    """Return four tables: settings of the broker, of topics, without effect, and of ZooKeeper."""
    return "\n".join(
        (
            "## Broker settings",
            "",
            *_table(BROKER_SETTINGS.values()),
            "",
            "## Topic settings",
            "",
            *_table(TOPIC_SETTINGS.values()),
            "",
            "## Broker settings without effect",
            "",
            "Apache Kafka's tools set these while a broker runs. They are checked, kept and described.",
            "",
            *_table(INERT_SETTINGS.values()),
            "",
            "## ZooKeeper settings",
            "",
            "A broker with `zookeeper.connect` joins a cluster ([cluster.md](cluster.md)). For a standalone "
            "broker the other settings have no effect.",
            "",
            *_table(ZOOKEEPER_SETTINGS.values()),
            "",
        )
    )


def _table(settings: Iterable[Setting]) -> Iterable[str]:
    yield "| key | default | type and allowed values | what it does |"
    yield "|---|---|---|---|"
    for declared in settings:
        default = format_value(declared.default)
        shown = f"`{default}`" if default else ""
        changes = " Can be changed while running." if declared.dynamic else ""
        values = declared.kind.name.lower()  # as Kafka's reference calls the types
        if declared.allowed is not None:
            values += f", {declared.allowed.text}"
        yield f"| `{declared.key}` | {shown} | {values} | {declared.doc}{changes} |"


if __name__ == "__main__":
    print(markdown())
