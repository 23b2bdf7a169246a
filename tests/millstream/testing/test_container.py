"""`KafkaContainer`, used as testcontainers' is."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from millstream.testing import BrokerError, KafkaContainer


def test_it_is_used_as_a_container() -> None:
    container = (
        KafkaContainer("confluentinc/cp-kafka:7.6.0")
        .with_kraft()
        .with_env("KAFKA_NUM_PARTITIONS", "3")
        .with_envs(KAFKA_LISTENERS="PLAINTEXT://0.0.0.0:9092", OTHER="x")
    )
    with pytest.raises(BrokerError, match=r"start\(\)"):
        container.get_bootstrap_server()
    with container as kafka:
        address = kafka.get_bootstrap_server()
        assert address == f"{kafka.get_container_host_ip()}:{kafka.get_exposed_port(9093)}"
        producer = Producer({"bootstrap.servers": address})
        producer.produce("orders", "a")
        assert producer.flush(60) == 0
        assert [record.text for record in kafka.broker.records("orders")] == ["a"]
        assert "orders-2" in kafka.broker.report()
    container.stop()


def test_a_setting_that_is_wrong_is_named() -> None:
    with pytest.raises(BrokerError, match=r"num\.partitions=many is not allowed"):
        KafkaContainer().with_env("KAFKA_NUM_PARTITIONS", "many").start()
