"""Source offsets in MirrorMaker's form, with the cases of its connectors' testAlterOffsets."""

import pytest

from connect.api import ConnectError
from kafka_client import TopicPartition
from mirror.connectors import MirrorCheckpointConnector, MirrorHeartbeatConnector, MirrorSourceConnector
from mirror.connectors.source_offsets import last_copied, source_partition

T = {"cluster": "dc1", "topic": "t", "partition": 3}
G = {"group": "g", "topic": "t", "partition": 3}
H = {"sourceClusterAlias": "dc1", "targetClusterAlias": "dc2"}


def test_the_form_is_mirrormakers():
    assert source_partition("dc1", TopicPartition("t", 3)) == T


@pytest.mark.parametrize(
    ("offset", "last"), [(None, None), ({}, None), ({"offset": -1}, None), ({"offset": 0}, 0)]
)
def test_a_negative_offset_is_none(offset, last):
    assert last_copied(offset) == last


@pytest.mark.parametrize(
    ("connector", "partition", "offset"),
    [
        (MirrorSourceConnector, T, {"offset": 0}),
        (MirrorSourceConnector, T, {"offset": 2**40}),
        (MirrorSourceConnector, T, None),
        (MirrorSourceConnector, {"no": "partition"}, None),
        (MirrorCheckpointConnector, G, {"offset": 0}),
        (MirrorCheckpointConnector, {}, None),
        (MirrorHeartbeatConnector, H, {"offset": 0}),
        (MirrorHeartbeatConnector, {}, None),
    ],
)
def test_offsets_that_may_be_set(connector, partition, offset):
    assert connector().alter_offsets({}, [(partition, offset)]) is True


@pytest.mark.parametrize("name", ["cluster", "topic", "partition"])
def test_a_source_partition_needs_each_field(name):
    incomplete = {key: value for key, value in T.items() if key != name}
    for partition in (incomplete, incomplete | {name: None}, incomplete | {name: 1.5}):
        with pytest.raises(ConnectError, match=name):
            MirrorSourceConnector().alter_offsets({}, [(partition, {"offset": 1})])


@pytest.mark.parametrize("value", [-1, "1", None, True, 1.5])
def test_an_offset_has_to_be_a_number(value):
    with pytest.raises(ConnectError, match="from 0 on"):
        MirrorSourceConnector().alter_offsets({}, [(T, {"offset": value})])
    with pytest.raises(ConnectError, match="'offset'"):
        MirrorSourceConnector().alter_offsets({}, [(T, {"other": 1})])


@pytest.mark.parametrize(
    ("connector", "partition"), [(MirrorCheckpointConnector, G), (MirrorHeartbeatConnector, H)]
)
def test_only_zero_is_an_offset_of_a_source_without_positions(connector, partition):
    with pytest.raises(ConnectError, match="'offset', 0; not 1"):
        connector().alter_offsets({}, [(partition, {"offset": 1})])
    for name in partition:
        with pytest.raises(ConnectError, match=name):
            incomplete = {key: value for key, value in partition.items() if key != name}
            connector().alter_offsets({}, [(incomplete, {"offset": 0})])


def test_records_of_open_transactions_are_not_exactly_once():
    assert MirrorSourceConnector().exactly_once_support({})
    keys = ("source.consumer.isolation.level", "consumer.isolation.level")
    for key in keys:
        assert not MirrorSourceConnector().exactly_once_support({key: "read_uncommitted"})
