"""Coverage-guided fuzzing of a target with atheris, which is libFuzzer for Python.

python -m tests.fuzz.run requests|batches|records [--seconds N] [--runs N] [--seed N] [--found FOLDER]

Begins with the corpus kept; inputs that reach something new go to FOLDER (a temporary one by default), for
`tests.fuzz.minimise`. Ends with status 0 when nothing was found; an input that was is written to the working
directory and named in the output, and goes into the corpus once the bug is mended.

Coverage is of Python: the compiled modules are fuzzed, but seen only through `targets.PLAIN_READER`, which
`records` runs beside the compiled reader.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import tracemalloc
from pathlib import Path
from types import FunctionType

try:
    import atheris
except ImportError:
    sys.exit("atheris is missing: pip install 'millstream[fuzz]'")

with atheris.instrument_imports(
    include=["kafka_client.wire", "kafka_client.records"], enable_loader_override=False
):
    from tests.fuzz import targets

from tests.fuzz.mutations import LIES


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__)
    parser.add_argument("target", choices=targets.TARGETS)
    parser.add_argument("--seconds", type=int, default=0, help="stop after so long (0: never)")
    parser.add_argument("--runs", type=int, default=-1, help="stop after so many inputs (-1: never)")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)), help="of all chance")
    parser.add_argument("--found", type=Path, help="where inputs go that reach something new")
    options = parser.parse_args()
    print(f"fuzzing {options.target} with --seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as temporary:
        new_inputs = options.found or Path(temporary) / "found"
        new_inputs.mkdir(parents=True, exist_ok=True)
        dictionary = Path(temporary) / "lies"
        dictionary.write_text("".join(f'"{_escaped(lie)}"\n' for lie in LIES))
        fuzz(
            targets.TARGETS[options.target],
            [
                str(new_inputs),
                str(targets.TARGETS[options.target].corpus),
                f"-dict={dictionary}",
                f"-max_len={targets.SIZE_MAX}",
                f"-max_total_time={options.seconds}",
                f"-runs={options.runs}",
                # 0 would have libFuzzer choose one itself.
                f"-seed={options.seed or 1}",
            ],
        )


def fuzz(target: targets.Target, arguments: list[str]) -> None:
    """Run a target until libFuzzer has enough; it ends the process."""
    targets.instrumented = atheris.instrument_func
    for owner in (targets.PLAIN_READER, targets.PLAIN_READER.RecordReader):
        for function in vars(owner).values():
            if isinstance(function, FunctionType) and function.__module__ == targets.PLAIN_READER.__name__:
                atheris.instrument_func(function)
    tracemalloc.start()

    def one_input(data: bytes) -> int:
        return 0 if target.run(data) else -1  # -1: not for the corpus

    atheris.Setup([sys.argv[0], *arguments], one_input)
    atheris.Fuzz()


def _escaped(data: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in data)


if __name__ == "__main__":
    main()
