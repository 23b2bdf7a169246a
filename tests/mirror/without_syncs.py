"""A mirror that writes no sync of what it has copied, and runs until it is killed.

python -m tests.mirror.without_syncs PROPERTIES
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from kafka_client.java_properties import read_properties
from mirror.config import parse_links
from mirror.link import Link

NEVER = 1e9


async def main(properties: str) -> None:
    (settings,) = parse_links(read_properties(Path(properties)))
    async with Link(replace(settings, emit_offset_syncs_interval_seconds=NEVER)) as link:
        await link.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
