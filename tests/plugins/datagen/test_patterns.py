"""Texts made up from a pattern match the pattern."""

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.datagen.patterns import text_maker

_ATOMS = st.sampled_from(["a", "_", "[a-c]", "[x0-3-]", r"\d", r"\w", ".", r"\.", "(?:b|cd|)", "(e|f)"])
_QUANTIFIERS = st.sampled_from(["", "?", "*", "+", "{2}", "{0,3}"])


@given(
    st.lists(st.builds(lambda atom, times: atom + times, _ATOMS, _QUANTIFIERS), max_size=6).map("".join),
    st.integers(),
)
def test_a_text_matches_its_pattern(pattern, seed):
    assert re.fullmatch(pattern, text_maker(pattern)(Random(seed)))


@pytest.mark.parametrize(
    "pattern", ["[a", "(a", "a)", "{2}", "*", "a{3,2}", "a{x}", "a{2000}", "[]", "[z-a]", "[^a]", "\\"]
)
def test_a_wrong_pattern_is_named(pattern):
    with pytest.raises(ValueError, match="regex"):
        text_maker(pattern)
