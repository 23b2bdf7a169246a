"""This broker as a member of its cluster, for the handlers of requests that other brokers send."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_client.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from logd.broker.broker import Broker
    from logd.broker.cluster.controller.controller_role import ControllerRole
    from logd.broker.cluster.member import Member


def member_of(broker: Broker) -> Member:
    """The broker among the others. KafkaError(INVALID_REQUEST) for one that is that is standalone."""
    if broker.membership is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "this broker is in no cluster of several")
    return broker.membership.member


def controlling(broker: Broker) -> ControllerRole:
    """The controller's role here. KafkaError(NOT_CONTROLLER)."""
    return member_of(broker).controlling
