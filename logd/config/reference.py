"""The settings as a Markdown reference, from the table that parsing and DescribeConfigs use."""

from __future__ import annotations

from collections.abc import Iterable

from logd.config.broker import BROKER_SETTINGS
from logd.config.inert import INERT_SETTINGS
from logd.config.setting import Setting, format_value
from logd.config.topic import TOPIC_SETTINGS
from logd.config.zookeeper import ZOOKEEPER_SETTINGS


def markdown() -> str:
    """Four tables: the broker's settings, topics', what is taken without effect, and ZooKeeper's."""
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
            "`zookeeper.connect` has a broker join a cluster ([cluster.md](cluster.md)). Without it a broker "
            "coordinates itself, and the others have no effect.",
            "",
            *_table(ZOOKEEPER_SETTINGS.values()),
            "",
        )
    )


def _table(settings: Iterable[Setting]) -> Iterable[str]:
    yield "| key | default | allowed | what it does |"
    yield "|---|---|---|---|"
    for declared in settings:
        default = format_value(declared.default)
        shown = f"`{default}`" if default else ""
        changes = " Can be changed while running." if declared.dynamic else ""
        yield f"| `{declared.key}` | {shown} | {declared.expected} | {declared.doc}{changes} |"


if __name__ == "__main__":
    print(markdown())
