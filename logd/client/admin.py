"""Administration: topics, configs, offsets, groups."""

from __future__ import annotations

from logd.client.group_admin import GroupAdmin
from logd.client.topic_admin import TopicAdmin


class Admin(TopicAdmin, GroupAdmin):
    """Admin calls on a client. Every error is a KafkaError whose message names the topic, group or config.

    `timeout_ms`: how long one call, with its retries, may take.
    """
