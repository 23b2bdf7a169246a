"""Stores of configs, statuses and source offsets: in a group's topics, in a file, in memory."""

from connect.stores.config_records import ConfigRecord
from connect.stores.config_topic import ConfigTopic
from connect.stores.fenced_writer import PrivilegedWriteError
from connect.stores.file_offsets import FileOffsetStore
from connect.stores.internal_topic import InternalTopic
from connect.stores.offset_topic import OffsetTopic
from connect.stores.offset_topics import ConnectorOffsetTopic, OffsetTopics
from connect.stores.offsets import ConnectorOffsets, OffsetStore
from connect.stores.status import StatusStore, StoredStatus, TopicUse
from connect.stores.status_topic import StatusTopic
from connect.stores.topic_log import TopicLog

__all__ = [
    "ConfigRecord",
    "ConfigTopic",
    "ConnectorOffsetTopic",
    "ConnectorOffsets",
    "FileOffsetStore",
    "InternalTopic",
    "OffsetStore",
    "OffsetTopic",
    "OffsetTopics",
    "PrivilegedWriteError",
    "StatusStore",
    "StatusTopic",
    "StoredStatus",
    "TopicLog",
    "TopicUse",
]
