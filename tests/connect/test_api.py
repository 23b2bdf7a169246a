"""The public surface, and connectors written as functions."""

import pytest

import connect.api
from connect.api import Config, RetriableError, SinkRecord, SourceRecord, setting, sink, source
from connect.testing import SinkRun, SourceRun


def test_exports():
    assert sorted(connect.api.__all__) == connect.api.__all__
    assert all(hasattr(connect.api, name) for name in connect.api.__all__)


class NumbersConfig(Config):
    """Counts."""

    topic: str = setting("Where to.")
    limit: int = setting("How many.", default=5)


@source(name="numbers", config=NumbersConfig, version="2", batch_size=2)
def numbers(config, state):
    """Counts upwards."""
    for n in range(state.get("next", 0), config.limit):
        state["next"] = n + 1
        yield SourceRecord(config.topic, n)


@source(name="later", config=NumbersConfig)
async def later(config, state):
    for n in range(state.get("next", 0), config.limit):
        state["next"] = n + 1
        yield SourceRecord(config.topic, n)
        if n == 2:
            yield None


def test_a_generator_is_a_connector():
    run = SourceRun(numbers, {"topic": "t"})
    first = run.poll()
    assert [r.value for r in first] == [0, 1]
    assert [r.source_offset for r in first] == [None, {"next": 2}]
    run.commit()
    run.poll()  # never acknowledged
    again = run.again()
    records = again.records()
    assert [r.value for r in records] == [2, 3, 4]
    assert again.tasks[0].context.is_finished
    again.stop()
    assert (numbers.VERSION, numbers.__doc__) == ("2", "Counts upwards.")


def test_an_async_generator_hands_over_at_none():
    run = SourceRun(later, {"topic": "t"})
    assert [r.value for r in run.poll()] == [0, 1, 2]
    run.stop()


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_generator_that_says_later_goes_on_behind_its_last_batch(kind):
    """Polling goes on after a generator raised: its end is not taken for the source's end."""
    refusals = [7]

    def numbers_from(state):
        for n in range(state.get("next", 0), 12):
            if n in refusals:
                refusals.remove(n)
                state["next"] = 100  # whatever it had come to, the records before it were not handed over
                raise RetriableError("busy")
            state["next"] = n + 1
            yield SourceRecord("t", n)

    @source(name="n", batch_size=5)
    def plain(config, state):
        yield from numbers_from(state)

    @source(name="n", batch_size=5)
    async def later(config, state):
        for record in numbers_from(state):
            yield record

    run = SourceRun({"plain": plain, "async": later}[kind], {})
    records = run.poll()
    with pytest.raises(RetriableError):
        run.poll()
    records += run.records()
    assert [r.value for r in records] == list(range(12))
    assert records[-1].source_offset == {"next": 12}
    run.stop()


def test_a_generator_without_a_declared_config_gets_a_mapping():
    @source(name="plain")
    def plain(config, state):
        yield SourceRecord(config["topic"], config.get("word"))

    run = SourceRun(plain, {"topic": "t", "word": "x"})
    assert [(record.topic, record.value) for record in run.records()] == [("t", "x")]
    run.stop()


class Target:
    def __init__(self):
        self.values, self.is_closed = [], False

    def close(self):
        self.is_closed = True


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_function_is_a_sink(kind):
    """The function gets its config, the records and the resources that live as long as the task."""
    targets = []

    def write(config, records, resources):
        if "target" not in resources:
            targets.append(resources.setdefault("target", Target()))
        resources["target"].values += [(config.topic, record.value) for record in records]

    async def write_async(config, records, resources):
        write(config, records, resources)

    connector = sink(name="write", config=NumbersConfig, version="3")(
        write if kind == "plain" else write_async
    )
    with SinkRun(connector, {"topic": "t"}) as run:
        run.put([SinkRecord("in", 0, 0, 1), SinkRecord("in", 0, 1, 2)])
        run.put([SinkRecord("in", 0, 2, 3)])
        assert run.flush() == {("in", 0): 3}
    assert [(target.values, target.is_closed) for target in targets] == [
        ([("t", 1), ("t", 2), ("t", 3)], True)
    ]
    assert (connector.VERSION, connector.__name__) == ("3", "write")


def test_a_function_without_a_declared_config_gets_a_mapping():
    written = []

    @sink(name="plain")
    def plain(config, records):
        """Writes."""
        written.extend((config["to"], record.value) for record in records)

    with SinkRun(plain, {"to": "here"}) as run:
        run.put([SinkRecord("t", 0, 0, "x")])
    assert written == [("here", "x")]
    assert plain.__doc__ == "Writes."
