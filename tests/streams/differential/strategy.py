"""Random plans, by Hypothesis, which shrinks those that differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from streams.serdes.windowed import FOREVER
from tests.streams.differential.functions import AGGREGATORS, FOREIGN_KEYS, UNDOERS
from tests.streams.differential.operators import OPERATORS, Operator
from tests.streams.differential.plan import Event, Plan, Step

INPUTS = ("in0", "in1", "in2", "in3")
STEPS_MAX = 10
WEIGHTS = {
    (): 3,
    ("group",): 8,
    ("windows",): 16,
    ("sessions",): 16,
    ("table", "table"): 4,
    ("rows",): 16,
    ("stream", "stream"): 4,
    ("stream", "table"): 8,
    ("table",): 4,
    ("branches",): 16,
    ("group", "group"): 6,
    ("cogroup",): 10,
    ("cogroup windows",): 16,
    ("cogroup sessions",): 16,
}
"""How likely operators are, by what they take, 2 if not said: more so those that need others before them."""
EVENTS_MAX = 20

keys = st.sampled_from(["a", "a", "b", "ab", None])
values = st.sampled_from(["1", "x", "xy", "22", "abc", None])
headers = st.sampled_from([[], [], [["h", "1"]], [["h", None], ["i", "2"]]])
timestamps = st.one_of(st.integers(0, 60), st.integers(0, 500))
clocks = st.tuples(st.just("wall"), st.integers(1, 120))
schedules = st.lists(
    st.tuples(st.sampled_from([7, 10, 40]), st.sampled_from(["stream_time", "wall_clock"])),
    max_size=2,
    unique=True,
)
histories = st.sampled_from([None, None, 0, 20, 60])
stores = st.fixed_dictionaries(
    {
        "named": st.booleans(),
        "caching": st.booleans(),
        "logging": st.sampled_from([True, True, False]),
        "retained": st.booleans(),
    }
)

PLAIN_STORE = {"name": None, "caching": True, "logging": True}

KEY_CHANGERS = ("select_key", "map", "flat_map", "group_by", "to_stream_by", "process")
MISPLACED = (OPERATORS["merge"], OPERATORS["process"], OPERATORS["process_values"])
"""Kafka moves repartition topics above these operators if keys were changed before. Records then miss the
topic, or have values of another type than its serde's.
"""


@dataclass(frozen=True, slots=True)
class Made:
    """A step that others can be made of. `cached`: what comes from it may have waited for a commit."""

    number: int
    kind: str
    step: Step
    cached: bool = False


class Topologies:
    """Draws steps, one by one."""

    def __init__(self, draw: Any, *, optimized: bool = False) -> None:
        self.draw = draw
        self.optimized = optimized
        self.steps: list[Step] = []
        self.made: list[Made] = []
        self.inputs = list(INPUTS)

    def add(self) -> None:
        """Draw a step that can be made of those there are."""
        fitting = [name for name, each in OPERATORS.items() if self._fits(name, each)]
        weighted = [name for name in fitting for _ in range(WEIGHTS.get(OPERATORS[name].takes, 2))]
        self.add_of(self.draw(st.sampled_from(weighted)))

    def _fits(self, name: str, operator: Operator) -> bool:
        if not operator.takes:
            return bool(self.inputs)
        return name not in ("to", "to_chosen") and all(
            self._candidates(operator, n) for n in range(len(operator.takes))
        )

    def _candidates(self, operator: Operator, n: int) -> list[Made]:
        return [
            made
            for made in self.made
            if made.kind == operator.takes[n]
            and self._takes(operator, made.step)
            # A named group that is aggregated besides is refused; by Kafka too where it optimizes nothing.
            and not (operator is OPERATORS["cogroup"] and made.step["name"])
            and not (self.optimized and operator in MISPLACED and self._is_rekeyed(made.step))
        ]

    def _is_rekeyed(self, step: Step) -> bool:
        return step["op"] in KEY_CHANGERS or any(self._is_rekeyed(self.steps[n]) for n in step["of"])

    @staticmethod
    def _takes(operator: Operator, step: Step) -> bool:
        sides = operator.of_text
        return ("k" not in sides or step["key"] == "s") and ("v" not in sides or step["value"] == "s")

    def add_key_changer(self) -> None:
        """Draw a step that changes keys, and several below it: their repartition topics are to be one."""
        draw = self.draw
        self.add_of(draw(st.sampled_from(["select_key", "map", "flat_map"])), [self.made[-1]])
        changer = self.made[-1]
        for _ in range(draw(st.integers(1, 3))):
            self.add_of(
                draw(st.sampled_from(["group_by_key", "group_by_key", "to_table", "filter"])), [changer]
            )
            if self.made[-1].kind == "group":
                self.add_of(draw(st.sampled_from(["count", "aggregate", "windowed_by"])), [self.made[-1]])

    def add_of(self, name: str, above: list[Made] | None = None) -> None:
        """Draw the rest of a step of this operator."""
        operator, draw = OPERATORS[name], self.draw
        if above is None:
            above = [draw(st.sampled_from(self._candidates(operator, n))) for n in range(len(operator.takes))]
        if name == "merge" and types(above[0].step) != types(above[1].step):
            above[1] = above[0]
        number = len(self.steps)
        step: dict[str, Any] = {"op": name, "of": [each.number for each in above]}
        step["f"] = draw(st.sampled_from(sorted(operator.functions))) if operator.functions else None
        step["name"] = f"N{number}" if operator.named and draw(st.booleans()) else None
        step["key"] = operator.key or above[0].step["key"]
        step["value"] = operator.value or above[0].step["value"]
        if operator.takes in (("windows",), ("cogroup windows",)):
            step["windowed"], step["key"] = True, str(above[0].step["size"])
        if operator.takes in (("sessions",), ("cogroup sessions",)):
            step["windowed"], step["key"] = True, "sessions"
        step["store"] = None
        if operator.stored and (step["key"] == "s" or "windowed" in step):
            step["store"] = self._store(number, optional=True, versions="windowed" not in step)
            if above and above[0].step.get("final"):
                # Which windows past retention are emitted depends on the kind of Java's store.
                step["store"] = {**(step["store"] or PLAIN_STORE), "retained": True}
            elif above and above[0].step.get("windows") == "unlimited" and step["store"]:
                step["store"]["retained"] = False
        self._more(step, above)
        self.steps.append(step)
        if operator.gives:
            cached = any(each.cached for each in above) or _caches(step, operator)
            self.made.append(Made(number, operator.gives, step, cached))

    def _store(self, number: int, *, optional: bool, versions: bool = False) -> dict[str, Any] | None:
        if optional and self.draw(st.booleans()):
            return None
        drawn = dict(self.draw(stores))
        named = drawn.pop("named") or not optional
        if versions and (history := self.draw(histories)) is not None:
            return {**drawn, "name": f"V{number}", "caching": False, "history": history}
        return {"name": f"S{number}" if named else None, **drawn}

    def _more(self, step: dict[str, Any], above: list[Made]) -> None:
        """Draw the options that only some operators have."""
        draw, name = self.draw, step["op"]
        if name in ("stream", "table"):
            count = 2 if name == "stream" and len(self.inputs) > 2 and draw(st.integers(0, 4)) == 0 else 1
            earlier = [each["topics"] for each in self.steps if each["op"] == "stream"]
            # Of optimized topologies `describe` may then list what follows a source in another order.
            again = name == "stream" and earlier and not self.optimized
            if again and draw(st.integers(0, 3)) == 0:
                step["topics"] = draw(st.permutations(draw(st.sampled_from(earlier))))
            else:
                step["topics"] = [self.inputs.pop(0) for _ in range(count)]
        elif name in ("to", "to_chosen"):
            step["topics"] = [f"out{len(self.steps)}"]
            if name == "to_chosen":
                step["topics"] += [f"out{len(self.steps)}-else"]
        elif name == "split":
            step["named"], step["rest"] = draw(st.booleans()), draw(st.booleans())
        elif name == "branch":
            split = above[0].step
            names = (["-x"] if split["named"] else ["1"]) + (
                [] if not split["rest"] else ["-rest"] if split["named"] else ["0"]
            )
            step["branch"] = draw(st.sampled_from(names))
        elif name == "cogroup":
            step["second"] = draw(st.sampled_from(sorted(AGGREGATORS)))
        elif name.endswith(("windowed_by", "sessions_by")):
            kinds = ["time", "time", "sliding", "unlimited"] if "windowed" in name else ["session"]
            step["windows"] = draw(st.sampled_from(kinds))
            step["size"], step["grace"] = draw(st.sampled_from([10, 25])), draw(st.sampled_from([0, 5, 30]))
            step["advance"] = draw(st.sampled_from([step["size"], 5, 7]))
            step["final"] = draw(st.sampled_from([False, True, False])) and not name.startswith("cogroup")
            if step["windows"] == "unlimited":
                step["start"], step["size"], step["final"] = draw(st.sampled_from([0, 20])), FOREVER, False
        elif name == "join":
            # Only with a table whose own store has a history; Java's left join fails at null keys then.
            history = (above[1].step["store"] or {}).get("history")
            step["late"] = (
                None if history is None else draw(st.sampled_from([None, 0, history // 2, history]))
            )
        elif name.startswith("stream_"):
            step["before"], step["after"] = draw(st.sampled_from([(10, 10), (0, 20), (5, 0)]))
            step["grace"] = draw(st.sampled_from([0, 5, 30]))
        elif name in ("foreign_join", "foreign_left_join"):
            step["foreign"] = draw(st.sampled_from(sorted(FOREIGN_KEYS)))
        elif name in ("reduce_rows", "aggregate_rows"):
            step["undo"] = draw(st.sampled_from(sorted(UNDOERS)))
        elif name == "suppress":
            step["wait"] = draw(st.sampled_from([0, 5, 30]))
            step["most"] = draw(st.sampled_from([1, 2, 1000]))
            # One update of these is 35 to 90 bytes.
            step["bytes"] = draw(st.sampled_from([None, 60, 120, 250]))
            step["ends"] = draw(st.sampled_from([False, False, True]))
            if step["key"] != "s" and draw(st.booleans()):
                step["wait"] = None
        elif name == "process":
            step["store"] = self._store(len(self.steps), optional=False) if draw(st.booleans()) else None
            # Of one processor only: where three schedules are due at once Kafka has no order.
            another = any(each["op"] == "process" for each in self.steps)
            step["schedules"] = [] if another else draw(schedules)
            step["delay"] = draw(st.sampled_from([0, 0, 3]))
            step["tells"] = not above[0].cached

    def end(self) -> None:
        """Write what nothing else takes."""
        sources = {number for step in self.steps for number in step["of"]}
        for made in [made for made in self.made if made.number not in sources and made.kind == "table"]:
            self.add_of("to_stream", [made])
        sources = {number for step in self.steps for number in step["of"]}
        for made in [made for made in self.made if made.number not in sources and made.kind == "stream"]:
            self.add_of(self.draw(st.sampled_from(["to", "to", "to_chosen"])), [made])


def types(step: Step) -> tuple[str, str]:
    return step["key"], step["value"]


def _caches(step: Step, operator: Operator) -> bool:
    return operator.stored and (step["store"] is None or step["store"]["caching"])


@st.composite
def plans(draw: Any, optimization: str = "none") -> Plan:
    """Draw a topology, built with this ``topology.optimization``, and events for the topics that it reads."""
    topologies = Topologies(draw, optimized=optimization != "none")
    topologies.add_of("stream", [])
    if topologies.optimized:
        topologies.add_key_changer()
    for _ in range(draw(st.integers(1, STEPS_MAX))):
        topologies.add()
    topologies.end()
    return Plan(topologies.steps, draw(_events(topologies.steps)), optimization)


@st.composite
def full_buffers(draw: Any, steps: Sequence[Step]) -> Plan:
    """Records for this topology, whose `suppress` steps hold back few bytes, or as many as they get."""
    bounded = [
        {
            **step,
            "most": draw(st.sampled_from([2, 1000])),
            "bytes": draw(st.integers(30, 200)),
            "ends": draw(st.booleans()),
        }
        if step["op"] == "suppress"
        else step
        for step in steps
    ]
    return Plan(bounded, draw(_events(steps)))


@st.composite
def _events(draw: Any, steps: Sequence[Step]) -> list[Event]:
    read = {topic for step in steps if step["op"] in ("stream", "table") for topic in step["topics"]}
    pipes = st.tuples(st.just("pipe"), st.sampled_from(sorted(read)), keys, values, timestamps, headers)
    count = draw(st.integers(1, EVENTS_MAX))
    events: list[Event] = draw(
        st.lists(st.one_of(pipes, pipes, pipes, clocks), min_size=count, max_size=count)
    )
    return events
