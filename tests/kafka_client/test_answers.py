"""An error that a broker reported names its subject once."""

from __future__ import annotations

import pytest

from kafka_client.cluster.answers import about


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (None, "t-0"),
        ("", "t-0"),
        ("t-0: a batch without records", "t-0: a batch without records"),
        (
            "The record batch size in the append to t-0 is 9 bytes.",
            "The record batch size in the append to t-0 is 9 bytes.",
        ),
        ("Unexpected error", "t-0: Unexpected error"),
        ("not-0, t-01 nor a.t-0", "t-0: not-0, t-01 nor a.t-0"),
    ],
)
def test_a_subject_is_named_once(message: str | None, text: str) -> None:
    assert about("t-0", "t-0", message) == text


def test_a_topic_is_named_once() -> None:
    assert (
        about("topic 'a.t'", "a.t", "topic a.t with 3 replicas: use 1") == "topic a.t with 3 replicas: use 1"
    )
    assert about("topic 'a.t'", "a.t", "use 1") == "topic 'a.t': use 1"
