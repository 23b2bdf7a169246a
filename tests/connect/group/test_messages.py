"""The messages of the Connect group, from peers that send anything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.errors import ConnectError
from connect.group import Assignment, Unit, WorkerState
from connect.group.eager import assign_eagerly

ASSIGNMENT = Assignment(leader="l", leader_url="u", units=(Unit("a"), Unit("a", 1)), revoked=(Unit("b", 0),))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_a_connect_error(data):
    for kind in (Assignment, WorkerState):
        try:
            kind.decode(data)
        except ConnectError:
            pass


@pytest.mark.parametrize("end", range(1, len(ASSIGNMENT.encode())))
def test_a_cut_message_is_an_error_or_lacks_only_optional_fields(end):
    data = ASSIGNMENT.encode()[:end]
    try:
        assert Assignment.decode(data).units == ASSIGNMENT.units
    except ConnectError:
        pass


def test_a_large_count_takes_no_memory():
    data = ASSIGNMENT.encode()
    count = data.index(b"\x00\x00\x00\x01\x00\x01a")
    with pytest.raises(ConnectError, match="too short"):
        Assignment.decode(data[:count] + b"\x7f\xff\xff\xff" + data[count + 4 :])


def test_what_is_not_revoked_is_kept():
    before = Assignment(units=(Unit("a"), Unit("b", 0), Unit("c", 1)))
    assert set(ASSIGNMENT.following(before).units) == {Unit("a"), Unit("a", 1), Unit("c", 1)}
    assert ASSIGNMENT.following(None) is ASSIGNMENT


def test_eager_tasks_go_on_where_the_connectors_end():
    units = [Unit("a"), Unit("a", 0), Unit("a", 1)]
    assert assign_eagerly(units, ["y", "x"]) == {"x": [Unit("a"), Unit("a", 1)], "y": [Unit("a", 0)]}
