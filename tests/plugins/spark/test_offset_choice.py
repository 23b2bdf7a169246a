"""JSON of offsets, as in Spark's JsonUtilsSuite and KafkaOffsetRangeLimitSuite, and what batches refuse."""

from __future__ import annotations

import pytest

from kafka_client import TopicPartition
from kafka_client.errors import ConfigError
from plugins.spark.offset_choice import (
    EARLIEST,
    GROUP,
    LATEST,
    OffsetBound,
    OffsetChoice,
    check_batch,
    parse_choice,
)

A0, A1, B0 = TopicPartition("topicA", 0), TopicPartition("topicA", 1), TopicPartition("topicB", 0)


def starting(text: str) -> OffsetChoice:
    return parse_choice({"startingoffsets": text}, "starting", EARLIEST)


def test_offsets_of_partitions() -> None:
    choice = starting('{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}')
    assert choice.each == {A0: OffsetBound("offset", 23), A1: LATEST, B0: EARLIEST}
    assert not choice.topics


def test_ends_of_the_log_for_whole_topics() -> None:
    choice = starting('{"topicA":"earliest","topicB":{"0":23},"topicC":"LATEST"}')
    assert choice.each == {B0: OffsetBound("offset", 23)}
    assert choice.topics == {"topicA": EARLIEST, "topicC": LATEST}
    without_c = OffsetChoice(each=choice.each, topics={"topicA": EARLIEST})
    assert without_c.bounds([A0, A1, B0], "startingOffsets") == {
        A0: EARLIEST,
        A1: EARLIEST,
        B0: OffsetBound("offset", 23),
    }
    with pytest.raises(ConfigError, match="topicC"):
        choice.bounds([A0, A1, B0], "startingOffsets")


def test_a_topic_named_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="topicA twice"):
        starting('{"topicA":"earliest","topicA":{"0":23}}')


@pytest.mark.parametrize(
    "text",
    [
        '{"topicA":"first"}',
        '{"topicA":[0,1]}',
        '{"topicA":{"0":"earliest"}}',
        '"earliest"',
        "no json",
        '{"topicA":{"0":1.5}}',
        '{"topicA":{"0":true}}',
    ],
)
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        starting(text)
    assert caught.value.value == text


def test_words_in_any_case_and_the_groups_offsets() -> None:
    assert starting(" Latest ").everywhere == LATEST
    assert starting("group").everywhere == GROUP
    with pytest.raises(ConfigError):
        parse_choice({"endingoffsets": "group"}, "ending", LATEST)


@pytest.mark.parametrize(
    ("start", "end", "says"),
    [
        ("latest", "latest", "may start"),
        ("earliest", "earliest", "may end"),
        ('{"topicA":{"0":-1}}', "latest", "may not start"),
        ('{"topicA":"latest"}', "latest", "may not start"),
        ("earliest", '{"topicA":{"0":-2}}', "may not end"),
        ('{"topicA":{"0":1,"1":1}}', '{"topicA":{"0":2}}', "same partitions"),
        ('{"topicA":{"0":3}}', '{"topicA":{"0":2}}', "greater than the end 2"),
    ],
)
def test_what_no_batch_can_read(start: str, end: str, says: str) -> None:
    ending = parse_choice({"endingoffsets": end}, "ending", LATEST)
    with pytest.raises(ConfigError, match=says):
        check_batch(starting(start), ending)
