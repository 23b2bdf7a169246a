"""Many histories in one test, each in a folder of its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path


def play_bundle(play: Callable[[int, Path], object], bundle: int, histories: int, folder: Path) -> None:
    """Play the bundle's seeds; one that fails is in the message."""
    for seed in range(bundle * histories, (bundle + 1) * histories):
        try:
            play(seed, folder / str(seed))
        except BaseException as error:
            error.add_note(f"seed {seed}: play({seed}, a new folder) gives it again")
            raise
        shutil.rmtree(folder / str(seed))
