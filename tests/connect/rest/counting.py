"""The connector of tests/java/CountingSource.java in Python."""

from __future__ import annotations

from connect.api import Config, Password, SourceConnector, SourceTask, setting


class CountingConfig(Config):
    """A source without records."""

    topic: str = setting("Topic.", importance="HIGH", width="NONE")
    limit: int = setting("How many.", default=5, group="Counting", width="SHORT", display_name="Limit")
    secret: Password | None = setting("A password.", default=None, importance="LOW", width="NONE")


class CountingTask(SourceTask):
    def poll(self) -> None:
        return None


class CountingSource(SourceConnector):
    CONFIG = CountingConfig
    VERSION = "1"
    task_class = CountingTask
