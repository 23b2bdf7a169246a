"""The escape of control characters in names that clients choose, for logs and terminals."""

from __future__ import annotations

from collections.abc import Iterator


def _control_characters() -> Iterator[int]:
    yield from range(0x20)
    yield from range(0x7F, 0xA0)  # among them C1's own escape, 0x9B
    yield from (0x2028, 0x2029)  # ends of lines and paragraphs
    # They change the direction of text, so that it looks like another text.
    yield from (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))


_ESCAPES = {code: repr(chr(code))[1:-1] for code in _control_characters()}
_ESCAPES_IN_LINES = {code: text for code, text in _ESCAPES.items() if chr(code) not in "\n\t"}


def escape_controls(text: str) -> str:
    r"""Return the text with control characters as `\n`, `\x1b` or `\u202e`: one line, safe in a terminal."""
    return text if text.isprintable() else text.translate(_ESCAPES)


def escape_controls_in_lines(text: str) -> str:
    """Return the text with control characters escaped, except for ends of lines and tabs."""
    return text if text.isprintable() else text.translate(_ESCAPES_IN_LINES)
