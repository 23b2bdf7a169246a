"""This broker as a member of its cluster, for the handlers of requests that other brokers send."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_client.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from logd.broker.broker import Broker
    from logd.broker.cluster.controller.controller_role import ControllerRole
    from logd.broker.cluster.member import Member


def member_of(broker: Broker) -> Member:
    """Return the broker's cluster member. Raises KafkaError(INVALID_REQUEST) if the broker is standalone."""
    if broker.membership is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "this broker is in no cluster of several")
    return broker.membership.member


def controlling(broker: Broker) -> ControllerRole:
    """Return the controller's role. Raises KafkaError(NOT_CONTROLLER) if this broker does not have it."""
    return member_of(broker).controlling
