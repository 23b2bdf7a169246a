"""Check of the regular expressions, RE2's, that brokers accept in subscriptions (KIP-848)."""

from __future__ import annotations

DESCRIPTIONS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
}
"""RE2/J's error texts by RE2's."""


def validate(expression: str) -> None:
    """Print whether the expression is valid."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(expression, options)
    except re2.error as error:
        (text,) = error.args
        message = text.decode() if isinstance(text, bytes) else str(text)
        why = message.partition(": ")[0]
        print(f"The regular expression `{expression}` is invalid: {DESCRIPTIONS.get(why, why)}.")
    else:
        print(f"The regular expression `{expression}` is valid.")
