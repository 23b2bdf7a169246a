"""How programs of foreign clients are told what to do and say what they did, for those in Python.

    PROGRAM write SERVERS TOPIC PARTITIONS      numbers from 0 on, number n to partition n % PARTITIONS
        acked NUMBER PARTITION OFFSET               -1: the client does not know where it is
        sent COUNT                                  the last line
    PROGRAM read SERVERS TOPIC GROUP            as a member, from the beginning, committing all the time
        read PARTITION OFFSET NUMBER
        committed PARTITION OFFSET                  the broker has said so

They end when their stdin does. A record that a client gives up, or an error that it does not get over, ends
them with another status than 0.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

AT_ONCE = 10
PAUSE_S = 0.1
"""Between so many records: brokers are to be disturbed, not kept busy."""
WAITING_MAX = 1000
"""So many records are under way at most."""
DELIVERY_MS = 180_000
BACKOFF_MS = 200
SESSION_MS = 6000
POLL_MS = 200
READ_AT_ONCE = 500

Write = Callable[[str, str, int, threading.Event], int]
"""Servers, topic, partitions, and what says that it is over; how many were sent."""
Read = Callable[[str, str, str, threading.Event], None]


def say(*words: object) -> None:
    """Write one whole line; any thread may call this."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def main(write: Write, read: Read) -> None:
    """Do what the arguments say."""
    kind, servers, topic, last = sys.argv[1:]
    is_over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), is_over.set()), daemon=True).start()
    if kind == "write":
        say("sent", write(servers, topic, int(last), is_over))
    else:
        read(servers, topic, last, is_over)
