"""`python -m millstream`."""

from __future__ import annotations

from millstream.main import main

if __name__ == "__main__":
    main()
