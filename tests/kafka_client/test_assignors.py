from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kafka_client.group.assignors import (
    ASSIGNORS,
    Assignment,
    Subscription,
    assign_cooperative_sticky,
    assign_range,
    assign_roundrobin,
)
from kafka_client.group.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kafka_client.topic_partition import TopicPartition


def tps(*names: str) -> list[TopicPartition]:
    return [TopicPartition(name[:-1], int(name[-1])) for name in names]


def settle(members: dict[str, Subscription], counts: dict[str, int]) -> tuple[Assignment, int]:
    """Rebalance as cooperative members do until nothing changes; the assignment and the rounds it took."""
    generation = max(s.generation for s in members.values())
    for rounds in range(1, 10):
        assignment = assign_cooperative_sticky(members, counts)
        generation += 1
        revoked = any(set(members[m].owned) - set(assignment[m]) for m in members)
        members = {m: Subscription(s.topics, assignment[m], generation) for m, s in members.items()}
        if not revoked:
            return assignment, rounds
    raise AssertionError("never settled")


def test_range_gives_the_first_members_one_more() -> None:
    members = {"b": Subscription(["t"]), "a": Subscription(["t"])}
    assert assign_range(members, {"t": 3}) == {"a": tps("t0", "t1"), "b": tps("t2")}


def test_range_gives_the_same_partitions_of_topics_alike_to_one_member() -> None:
    members = {m: Subscription(["left", "right"]) for m in "abc"}
    for assigned in assign_range(members, {"left": 7, "right": 7}).values():
        left = {tp.partition for tp in assigned if tp.topic == "left"}
        assert left == {tp.partition for tp in assigned if tp.topic == "right"}


def test_roundrobin_deals_over_all_topics_and_passes_over_who_did_not_ask() -> None:
    members = {"a": Subscription(["t", "u"]), "b": Subscription(["u"])}
    assert assign_roundrobin(members, {"t": 2, "u": 3}) == {"a": tps("t0", "t1", "u1"), "b": tps("u0", "u2")}


def test_topics_that_do_not_exist_are_left_out() -> None:
    members = {"a": Subscription(["nowhere"])}
    for assign in ASSIGNORS.values():
        assert assign(members, {"nowhere": 0}) == {"a": []}


def test_what_moves_is_given_up_first_and_handed_over_next() -> None:
    owner = Subscription(["t"], tps("t0", "t1", "t2", "t3"), 1)
    first = assign_cooperative_sticky({"a": owner, "b": Subscription(["t"])}, {"t": 4})
    assert len(first["a"]) == 2
    assert set(first["a"]) < set(owner.owned)
    assert first["b"] == []
    final, rounds = settle({"a": owner, "b": Subscription(["t"])}, {"t": 4})
    assert rounds == 2
    assert final["a"] == first["a"]
    assert len(final["b"]) == 2


def test_of_two_claims_the_later_generation_wins() -> None:
    zombie = Subscription(["t"], tps("t0", "t1"), 3)
    owner = Subscription(["t"], tps("t0", "t1"), 4)
    assignment = assign_cooperative_sticky({"a": zombie, "b": owner, "c": Subscription(["t"])}, {"t": 2})
    assert assignment["a"] == []
    assert len(assignment["b"]) == 1


@given(
    counts=st.dictionaries(st.sampled_from("tuvw"), st.integers(1, 6), min_size=1),
    subscriptions=st.lists(st.sets(st.sampled_from("tuvw"), min_size=1), min_size=1, max_size=5),
    data=st.data(),
)
def test_every_assignor_gives_each_partition_to_one_who_wants_it(
    counts: dict[str, int], subscriptions: list[set[str]], data: st.DataObject
) -> None:
    members = {f"m{i}": Subscription(sorted(topics)) for i, topics in enumerate(subscriptions)}
    expected = {
        TopicPartition(t, p)
        for t in counts
        for p in range(counts[t])
        if any(t in topics for topics in subscriptions)
    }
    for assign in ASSIGNORS.values():
        assignment = assign(members, counts)
        assert Counter(tp for partitions in assignment.values() for tp in partitions) == Counter(expected)
        assert all(tp.topic in members[m].topics for m, partitions in assignment.items() for tp in partitions)
    # Then somebody leaves, and the others hold on to what they have.
    settled, _ = settle(members, counts)
    leaver = data.draw(st.sampled_from(sorted(members)))
    rest = {m: Subscription(s.topics, settled[m], 1) for m, s in members.items() if m != leaver}
    if rest:
        after, _ = settle(rest, counts)
        wanted_still = {tp for tp in expected if any(tp.topic in s.topics for s in rest.values())}
        assert {tp for partitions in after.values() for tp in partitions} == wanted_still


@given(st.integers(1, 6), st.integers(1, 20), st.integers(1, 6))
def test_cooperative_sticky_is_even_and_moves_no_more_than_it_must(
    before: int, partitions: int, after: int
) -> None:
    counts = {"t": partitions}
    first, _ = settle({f"m{i}": Subscription(["t"]) for i in range(before)}, counts)
    then = {f"m{i}": Subscription(["t"], first.get(f"m{i}", ()), 1) for i in range(after)}
    second, rounds = settle(then, counts)
    sizes = [len(own) for own in second.values()]
    assert max(sizes) - min(sizes) <= 1
    assert rounds <= 2
    unmoved = sum(len(set(first.get(m, ())) & set(own)) for m, own in second.items())
    assert unmoved >= sum(min(len(first.get(m, ())), partitions // after) for m in second)


@given(st.lists(st.tuples(st.sampled_from("tuv"), st.integers(0, 9)), unique=True))
def test_what_members_tell_each_other_comes_back(pairs: list[tuple[str, int]]) -> None:
    owned = sorted(TopicPartition(*pair) for pair in pairs)
    assert decode_assignment(encode_assignment(owned)) == owned
    subscription = decode_subscription(encode_subscription(Subscription(["t", "u"], owned, 7)))
    assert (subscription.topics, sorted(subscription.owned), subscription.generation) == (
        ["t", "u"],
        owned,
        7,
    )


def test_no_assignment_at_all_is_an_empty_one() -> None:
    assert decode_assignment(b"") == []
