"""AlterPartition, 2 to 3: leaders tell the controller who is in sync (KIP-497, KIP-903)."""

from __future__ import annotations

from kafka_client.errors import KafkaError
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartition,
    AlterPartitionResponse,
    AlterPartitionResponsePartition,
    AlterPartitionResponseTopic,
)
from logd.api.cluster_member import controlling
from logd.api.request.context import RequestContext
from logd.broker.broker import Broker
from logd.metadata.controller.alter_partition import UNKNOWN_EPOCH, Altered, NewIsr
from logd.metadata.image import PartitionImage

REQUEST = AlterPartitionRequest


async def handle(request: AlterPartitionRequest, context: RequestContext) -> AlterPartitionResponse:
    """Answer partition by partition, with the state that holds now."""
    new_isrs = [
        _new_isr(context.broker, topic.topic_id, partition)
        for topic in request.topics
        for partition in topic.partitions
    ]
    try:
        decision = await controlling(context.broker).do(
            lambda controller: controller.alter_partition(
                request.broker_id, request.broker_epoch, new_isrs, version=context.version
            )
        )
    except KafkaError as error:
        return AlterPartitionResponse(error_code=error.code)
    return _response(request, decision.answer)


def _new_isr(broker: Broker, topic_id: bytes, partition: AlterPartitionRequestPartition) -> NewIsr:
    topic = broker.catalog.topics_by_id.get(topic_id)
    isr = {replica.broker_id: replica.broker_epoch for replica in partition.new_isr_with_epochs}
    return NewIsr(
        tp=TopicPartition("" if topic is None else topic.name, partition.partition_index),
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        isr=isr or dict.fromkeys(partition.new_isr, UNKNOWN_EPOCH),
        topic_id=topic_id,
    )


def _response(request: AlterPartitionRequest, answers: Altered) -> AlterPartitionResponse:
    left = iter(answers)
    return AlterPartitionResponse(
        topics=[
            AlterPartitionResponseTopic(
                topic_id=topic.topic_id,
                partitions=[_answer(partition.partition_index, next(left)) for partition in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _answer(index: int, altered: PartitionImage | KafkaError) -> AlterPartitionResponsePartition:
    if isinstance(altered, KafkaError):
        return AlterPartitionResponsePartition(partition_index=index, error_code=altered.code)
    return AlterPartitionResponsePartition(
        partition_index=index,
        leader_id=altered.leader,
        leader_epoch=altered.leader_epoch,
        isr=list(altered.isr),
        partition_epoch=altered.partition_epoch,
    )
