"""The controller's decisions: functions of the cluster's image, one noun per file.

Each takes the image and facts, and returns a `Decision`: the changes to be written and applied, and the
answer to the request. `Controller` (``core``) ties them together; ``logd.metadata.serving`` writes and
applies one decision after the other. Nothing here uses a socket, a thread, a clock or a random number. Live
brokers are passed in, and so is any free choice, such as where a topic's placement starts.
"""
