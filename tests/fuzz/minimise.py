"""Add to the corpus the inputs of a folder that reach something no smaller input of the corpus does.

python -m tests.fuzz.minimise requests|batches|records [FOLDER] [--rebuild]

An input reaches pairs of lines of `kafka_client.wire` and `kafka_client.records`, one after the other. Of
compiled decoders only how they end counts, and all versions of a message are one: the corpus is to stay
small. With ``--rebuild`` it is chosen again from itself and FOLDER.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

from tests.fuzz.targets import TARGETS, Target

Step: TypeAlias = tuple[str, object, object]
"""A file, and two lines of it that ran one after the other."""

_OF_INTEREST = re.compile(r"/logd/(wire|records)/|^<.* decoder>$")
_VERSION = re.compile(r" v\d+ ")


class Trace:
    """The steps taken while it is entered."""

    def __init__(self) -> None:
        self.steps: set[Step] = set()

    def __enter__(self) -> set[Step]:
        sys.settrace(self._called)
        return self.steps

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if not _OF_INTEREST.search(file):
            return None
        steps = self.steps
        if file.startswith("<"):
            name = _VERSION.sub(" ", file)

            def on_end(frame: FrameType, event: str, argument: Any) -> Any:
                if event != "line":
                    steps.add((name, event, argument is None))
                return on_end

            return on_end
        last = frame.f_lineno

        def on_line(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal last
            steps.add((file, last, frame.f_lineno))
            last = frame.f_lineno
            return on_line

        return on_line


def reached(target: Target, data: bytes) -> set[Step]:
    """Return the steps that an input reaches in its second run, when decoders are compiled."""
    target.run(data)
    with Trace() as steps:
        target.run(data)
    return steps


def chosen(target: Target, inputs: Iterable[bytes]) -> list[bytes]:
    """Return the inputs to keep, smallest first."""
    all_steps: set[Step] = set()
    smallest_inputs = []
    for data in sorted(set(inputs), key=lambda data: (len(data), data)):
        steps = reached(target, data)
        if steps - all_steps:
            all_steps |= steps
            smallest_inputs.append(data)
    return smallest_inputs


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.minimise", description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("folder", type=Path, nargs="?", help="inputs to add")
    parser.add_argument(
        "--rebuild", action="store_true", help="drop from the corpus what is of no use any more"
    )
    options = parser.parse_args()
    target = TARGETS[options.target]
    old = {path: path.read_bytes() for path in target.corpus.iterdir()}
    inputs = [path.read_bytes() for path in options.folder.iterdir()] if options.folder else []
    corpus = chosen(target, [*old.values(), *inputs])
    for path, data in old.items():
        if options.rebuild and data not in corpus:
            path.unlink()
    for data in corpus:
        if data not in old.values():
            (target.corpus / hashlib.sha1(data, usedforsecurity=False).hexdigest()[:16]).write_bytes(data)
    print(f"{len(list(target.corpus.iterdir()))} inputs, {len(inputs)} looked at")


if __name__ == "__main__":
    main()
