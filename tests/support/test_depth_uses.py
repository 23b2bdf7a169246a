"""Files of tests with numbers of `depth`, and such with its marks alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.depth_uses import TESTS, uses_depth

BY_MARKS = "from tests.support import depth\n@depth.deep\ndef test_other(): pass\ndef test_one(): pass\n"
BY_NAMES = "from tests.support.depth import ONE_IN, deep, seeds\nCASES = seeds(3)\ndef test_one(): ONE_IN\n"
ITSELF = "from tests.support import depth\ndef test_one(): depth.times(3)\n"
IMPORTED = "from tests.support.depth import times as repeat\ndef test_one(): repeat(3)\n"
FULL_NAME = "import tests.support.depth\ndef test_one(): tests.support.depth.times(3)\n"
IN_MARK = "from tests.support import depth\n@settings(max_examples=depth.times(3))\ndef test_one(): pass\n"
PASSED_ON = "from tests.support import depth\ndef test_one(): play(depth)\n"
ANOTHER = "from tests.support import depth\ndef test_another(): depth.times(3)\ndef test_one(): pass\n"
CONSTANT = "from tests.support import depth\nROUNDS = depth.times(3)\ndef test_one(): pass\n"
IN_IMPORTED_TEST = "from tests.streams.dsl import test_windows\ndef test_one(): pass\n"
FAR = "from tests.faults.cluster.test_chaos import SEEDS\ndef test_one(): pass\n"


@pytest.mark.parametrize("source", [ITSELF, IMPORTED, FULL_NAME, IN_MARK, PASSED_ON, CONSTANT, FAR])
def test_a_test_with_a_number_of_the_depth_uses_it(tmp_path: Path, source: str) -> None:
    (file := tmp_path / "test_file.py").write_text(source)
    assert uses_depth(file, "test_one")


@pytest.mark.parametrize("source", [BY_MARKS, BY_NAMES, ANOTHER, IN_IMPORTED_TEST])
def test_marks_and_the_numbers_of_other_tests_are_not_its_own(tmp_path: Path, source: str) -> None:
    (file := tmp_path / "test_file.py").write_text(source)
    assert not uses_depth(file, "test_one")


@pytest.mark.parametrize(
    ("name", "test", "expected"),
    [
        ("faults/exactly_once/test_exactly_once.py", "test_on_logd", True),
        ("faults/cluster/test_kills.py", "test_the_controller_and_leaders_are_killed", True),
        ("faults/test_model.py", "test_histories", False),
        ("kafka_client/test_admin.py", "test_a_topics_life", False),
    ],
)
def test_files_of_the_suite(name: str, test: str, expected: bool) -> None:
    assert uses_depth(TESTS / name, test) is expected
