"""Metrics by Kafka's names: read when asked, told to Prometheus by the names its JMX exporter gives them."""

from __future__ import annotations

import contextlib
import math

from prometheus_client.parser import text_string_to_metric_families

from kafka_client.metrics.exposition import exposition
from kafka_client.metrics.metrics import MetricName, Metrics
from kafka_client.metrics.windowed import WINDOW_SECONDS, Windowed, in_ms


def test_numbers_are_read_when_asked() -> None:
    metrics, sent = Metrics(), [0.0]
    metrics.add("kafka.producer", "producer-metrics", lambda: {"record-send-total": sent[0]}, client_id="c1")
    sent[0] = 7
    assert dict(metrics.read()) == {
        MetricName("kafka.producer", "producer-metrics", "record-send-total", (("client-id", "c1"),)): 7
    }
    sent[0] = 8
    assert metrics.values("producer-metrics", client_id="c1") == {"record-send-total": 8}
    assert metrics.values("producer-metrics", client_id="c2") == {}


def test_a_partitions_are_told_apart_by_its_tags_and_added_up() -> None:
    metrics = Metrics()
    metrics.add_each(
        "kafka.consumer",
        "consumer-fetch-manager-metrics",
        lambda: (({"topic": "t", "partition": str(n)}, {"records-lag": n}) for n in range(4)),
        client_id="c1",
    )
    assert metrics.values("consumer-fetch-manager-metrics", partition="3") == {"records-lag": 3}
    assert metrics.values("consumer-fetch-manager-metrics") == {"records-lag": 6}
    assert str(next(metrics.read())[0]) == (
        "kafka.consumer:type=consumer-fetch-manager-metrics,client-id=c1,partition=0,topic=t:records-lag"
    )


def test_who_has_ended_is_not_asked_any_more() -> None:
    metrics = Metrics()
    removes = [metrics.add("d", "t", lambda: {"v": 1}, id=name) for name in "ab"]
    removes[0]()
    removes[0]()
    assert [name.tags for name, _ in metrics.read()] == [(("id", "b"),)]


def test_one_that_ends_while_metrics_are_read() -> None:
    metrics = Metrics()
    removes = [metrics.add("d", "t", lambda: {"v": 1}, id=name) for name in "ab"]
    for remove, _ in zip(removes, metrics.read(), strict=True):
        remove()
    assert not list(metrics.read())


def test_two_of_one_name_are_told_apart() -> None:
    """Prometheus keeps one sample of a name; with two workers in one process every sample came twice."""
    metrics = Metrics()

    def values() -> list[tuple[str, float]]:
        return sorted((str(name), value) for name, value in metrics.read())

    removes = [metrics.add("d", "t", lambda n=n: {"v": n}, id="a") for n in range(3)]  # type: ignore[misc]
    other = metrics.add("d", "t", lambda: {"v": 9}, id="b")
    assert values() == [
        ("d:type=t,id=a,number=2:v", 1),
        ("d:type=t,id=a,number=3:v", 2),
        ("d:type=t,id=a:v", 0),
        ("d:type=t,id=b:v", 9),
    ]
    assert metrics.values("t", id="a") == {"v": 3}
    removes[1]()
    removes[1]()
    removes[1] = metrics.add("d", "t", lambda: {"v": 5}, id="a")
    assert ("d:type=t,id=a,number=2:v", 5) in values()
    for remove in (*removes, other):
        remove()
    again = metrics.add("d", "t", lambda: {"v": 1}, id="a")
    assert values() == [("d:type=t,id=a:v", 1)]
    again()
    assert not metrics._alike, "it remembers nobody who is gone"


def test_prometheus_reads_them() -> None:
    metrics = Metrics()
    metrics.add("kafka.producer", "producer-metrics", lambda: {"record-send-total": 3}, client_id='a "b"\n\\')
    metrics.add("kafka.producer", "producer-metrics", lambda: {"requests-in-flight": 2.5}, client_id="c2")
    metrics.add("kafka.producer", "producer-metrics", lambda: {"record-send-total": 4}, node_id="1")
    families = {
        family.name: family for family in text_string_to_metric_families(exposition(metrics).decode())
    }
    total = families["kafka_producer_producer_metrics_record_send"]
    assert total.type == "counter"
    assert {tuple(sample.labels.items()): sample.value for sample in total.samples} == {
        (("client_id", 'a "b"\n\\'),): 3,
        (("node_id", "1"),): 4,
    }
    gauge = families["kafka_producer_producer_metrics_requests_in_flight"]
    assert gauge.type == "gauge"
    assert [sample.value for sample in gauge.samples] == [2.5]


def test_totals_of_kafkas_that_fall_are_no_counters() -> None:
    metrics = Metrics()
    metrics.add("kafka.streams", "stream-task-metrics", lambda: {"restore-remaining-records-total": 4})
    (family,) = text_string_to_metric_families(exposition(metrics).decode())
    assert (family.type, family.samples[0].value) == ("gauge", 4)
    assert family.name == "kafka_streams_stream_task_metrics_restore_remaining_records_total"


def test_values_of_lately() -> None:
    now = [100.0]
    latency = Windowed(lambda: now[0])
    assert math.isnan(latency.average)
    assert math.isnan(latency.largest)
    latency.record(4)
    now[0] += WINDOW_SECONDS
    latency.record(2)
    assert (latency.average, latency.largest) == (3, 4)
    now[0] += WINDOW_SECONDS
    assert (latency.average, latency.largest) == (2, 2)
    now[0] += 2 * WINDOW_SECONDS
    assert math.isnan(latency.average)
    assert math.isnan(latency.largest)
    assert (latency.count, latency.total) == (2, 6)


def test_negative_values_have_a_largest_too() -> None:
    lag = Windowed(lambda: 0.0)
    lag.record(-5)
    lag.record(-3)
    assert (lag.largest, lag.smallest, lag.last) == (-3, -5, -3)


def test_the_smallest_is_forgotten_like_the_largest() -> None:
    now = [0.0]
    age = Windowed(lambda: now[0])
    age.record(1)
    now[0] += WINDOW_SECONDS
    age.record(7)
    assert age.smallest == 1
    now[0] += WINDOW_SECONDS
    assert age.smallest == 7
    now[0] += WINDOW_SECONDS
    assert math.isnan(age.smallest)
    assert age.last == 7


def test_the_share_of_the_time_lately() -> None:
    now = [0.0]
    work = Windowed(lambda: now[0])
    assert work.ratio == 0, "no time has passed"
    now[0] += 4
    work.record(1)
    assert (work.recent, work.ratio) == (1, 0.25), "of the time since it was made"
    now[0] += 6
    work.record(8)
    assert work.ratio == 0.9
    now[0] = 2 * WINDOW_SECONDS - 10
    work.record(1)
    assert work.ratio == 10 / 50
    now[0] = 2 * WINDOW_SECONDS
    assert (work.recent, work.ratio) == (1, 1 / WINDOW_SECONDS), "the first window is forgotten"
    work.record(1000)
    assert work.ratio == 1, "it began before the windows"
    now[0] += 2 * WINDOW_SECONDS
    assert (work.recent, work.ratio) == (0, 0)


def test_reading_changes_nothing() -> None:
    """Reading has no side effects, so one thread may record while another reads."""
    now = [0.0]
    latency = Windowed(lambda: now[0])
    latency.record(4)
    for now[0] in (0.0, WINDOW_SECONDS, 5 * WINDOW_SECONDS):
        _ = latency.average, latency.largest, latency.smallest, latency.ratio
    now[0] = WINDOW_SECONDS
    assert latency.average == 4


def test_what_a_body_takes_is_recorded_unless_it_raises() -> None:
    now = [0.0]
    latency = Windowed(lambda: now[0])
    with latency.timed():
        now[0] += 2
    with contextlib.suppress(KeyError), latency.timed():
        raise KeyError
    assert (latency.count, latency.last) == (1, 2)
    assert in_ms("x", latency) == {"x-avg": 2000, "x-max": 2000}
