"""BrokerReport, 0: a broker is shutting down or lost log directories; the controller moves its leaders."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_client.errors import KafkaError
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.private.broker_report import BrokerReportRequest, BrokerReportResponse, ReportedTopic
from logd.api.cluster_member import controlling
from logd.api.request.context import RequestContext

REQUEST = BrokerReportRequest


async def handle(request: BrokerReportRequest, context: RequestContext) -> BrokerReportResponse:
    """Answer with what it would be missed for."""
    broker, epoch = request.broker_id, request.broker_epoch
    remaining: list[TopicPartition] = []
    offline = [TopicPartition(topic.name, index) for topic in request.offline for index in topic.partitions]
    try:
        controller = controlling(context.broker)
        if request.offline_log_dirs:
            await controller.do(
                lambda core: core.fail_log_dirs(
                    broker, epoch, log_dirs=request.offline_log_dirs, partitions=offline
                )
            )
        if request.is_shutting_down:
            remaining = (await controller.do(lambda core: core.shut_down(broker, epoch))).answer
    except KafkaError as error:
        return BrokerReportResponse(error_code=error.code, error_message=error.message)
    return BrokerReportResponse(remaining=_by_topic(remaining))


def _by_topic(tps: Iterable[TopicPartition]) -> list[ReportedTopic]:
    topics: dict[str, ReportedTopic] = {}
    for tp in tps:
        topics.setdefault(tp.topic, ReportedTopic(name=tp.topic, partitions=[])).partitions.append(
            tp.partition
        )
    return list(topics.values())
