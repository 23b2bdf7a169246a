"""The jobs of `StreamsJobs.java` in Millstream's language; each is given to `millstream streams run`."""

from __future__ import annotations

from datetime import timedelta

from streams import (
    JoinWindows,
    KGroupedStream,
    KTable,
    Materialized,
    SessionWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
    Windowed,
)

TUMBLING = TimeWindows(timedelta(seconds=10))
HOPPING = TimeWindows(timedelta(seconds=10), advance=timedelta(seconds=2))
SESSIONS = SessionWindows(timedelta(seconds=5))
MATCHES = JoinWindows.of(timedelta(seconds=1))


def _builder() -> StreamsBuilder[str, str]:
    return StreamsBuilder(key_serde=str, value_serde=str)


def stateless() -> Topology:
    """Convert values to upper case and drop half of them."""
    builder = _builder()
    upper = builder.stream("events").map(lambda key, value: (key, value.upper()))
    upper.filter(lambda key, value: value[0] < "N").to("out")
    return builder.build()


def table_join() -> Topology:
    """Join each event with its user's name."""
    builder = _builder()
    users = builder.table("users")
    builder.stream("events").join(users, lambda event, user: f"{event} {user}").to("out")
    return builder.build()


def _word_count(store: str | Materialized) -> Topology:
    builder = _builder()
    words = builder.stream("lines").flat_map_values(str.split).group_by(lambda key, word: word)
    words.count(store=store).to_stream().to("counts", value_serde=int)
    return builder.build()


def word_count() -> Topology:
    """Count the words of lines, through a repartition topic."""
    return _word_count("counts")


def word_count_uncached() -> Topology:
    """Count the words without a cache, so that each update is sent."""
    return _word_count(Materialized(name="counts", caching=False))


def _grouped() -> tuple[StreamsBuilder[str, str], KGroupedStream[str, str]]:
    builder = _builder()
    return builder, builder.stream("events").group_by_key()


def _written(builder: StreamsBuilder[str, str], counts: KTable[Windowed[str], int]) -> Topology:
    counts.to_stream(key=lambda windowed, count: windowed.key).to("counts", value_serde=int)
    return builder.build()


def tumbling() -> Topology:
    """Count the events of each user in 10 s."""
    builder, grouped = _grouped()
    return _written(builder, grouped.windowed_by(TUMBLING).count(store="counts"))


def hopping() -> Topology:
    """Count the events of each user in 10 s, every 2 s: an event is in five windows."""
    builder, grouped = _grouped()
    return _written(builder, grouped.windowed_by(HOPPING).count(store="counts"))


def sessions() -> Topology:
    """Count the events of each user with less than 5 s between them."""
    builder, grouped = _grouped()
    return _written(builder, grouped.windowed_by(SESSIONS).count(store="counts"))


def suppressed() -> Topology:
    """Count the events in tumbling windows, and send only the last result of each."""
    builder, grouped = _grouped()
    counts = grouped.windowed_by(TUMBLING).count(store="counts")
    return _written(builder, counts.suppress(Suppressed.until_window_closes()))


def stream_join() -> Topology:
    """Join events with other events of the user no more than a second away."""
    builder = _builder()
    events, others = builder.stream("events"), builder.stream("others")
    events.join(others, lambda event, other: f"{event} {other}", windows=MATCHES).to("out")
    return builder.build()


def foreign_join() -> Topology:
    """Join each order with the user that it names, by a foreign key."""
    builder = _builder()
    orders, users = builder.table("orders"), builder.table("users")
    joined = orders.join(
        users,
        lambda order, user: f"{order} {user}",
        foreign_key=lambda order: order.partition("|")[0],
        store="joined",
    )
    joined.to_stream().to("out")
    return builder.build()
