"""Administration: topics, configs, offsets, groups, transactions."""

from __future__ import annotations

from logd.client.group_admin import GroupAdmin
from logd.client.topic_admin import TopicAdmin
from logd.client.transaction_admin import TransactionAdmin


class Admin(TopicAdmin, GroupAdmin, TransactionAdmin):
    """Admin calls on a client. Every error is a KafkaError whose message names the topic, group, config or
    transactional id.

    `timeout_ms`: how long one call, with its retries, may take.
    """
