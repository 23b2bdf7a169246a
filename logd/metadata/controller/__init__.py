"""What the broker that is the controller decides: functions of the cluster's image, one noun per file.

Each takes the image and facts, and returns a `Decision`: the changes to be written and applied, and the
answer for whoever asked. `Controller` (``core``) ties them together; ``logd.metadata.serving`` writes and
applies one decision after the other. Nothing here knows a socket, a thread, a clock or a random number: who
is alive is told, and where a choice is free (where a topic's placement starts) the choice is handed in.
"""
