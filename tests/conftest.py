"""What holds for every test."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("millstream", deadline=None, print_blob=True)
settings.load_profile("millstream")
"""No example has a deadline: on a machine that is busy elsewhere any of them may take Hypothesis' 200 ms."""
