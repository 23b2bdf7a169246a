"""A plan: a topology and what is piped into it, as the JSON that both sides run.

A step makes one noun of earlier ones: `op` names it (see `operators`), `of` has the numbers of those steps,
`f` the function, `name` and `store` what is given to the operator. `key` and `value` are the types of what it
makes: `s` a string, `l` a long, a number the size of a windowed key, `sessions` for
one of sessions. `history` makes a store versioned, `late` is the grace of a join with its table.

Events are `["pipe", topic, key, value, timestamp, headers]` and `["wall", ms]`, which moves the wall clock.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Step = Mapping[str, Any]
Event = Sequence[Any]

START = 3
"""Where the wall clock begins, ms."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A topology and its events."""

    steps: Sequence[Step]
    events: Sequence[Event]
    optimization: str = "none"

    @property
    def line(self) -> str:
        """The plan as one line of JSON."""
        plan: dict[str, Any] = {"steps": self.steps, "events": self.events}
        if self.optimization != "none":
            plan["optimization"] = self.optimization
        return json.dumps(plan)

    @classmethod
    def of(cls, line: str) -> Plan:
        """Return the plan of a `line`."""
        data = json.loads(line)
        return cls(data["steps"], data["events"], data.get("optimization", "none"))

    def __repr__(self) -> str:
        listing = [f"  {number}: {_described(step)}" for number, step in enumerate(self.steps)]
        return "\n".join(["a plan:", *listing, *(f"  {event}" for event in self.events), self.line])


def _described(step: Step) -> str:
    above = ", ".join(map(str, step["of"]))
    rest = {name: value for name, value in step.items() if name not in ("op", "of") and value is not None}
    return f"{step['op']}({above}) {' '.join(f'{name}={value}' for name, value in rest.items())}"
