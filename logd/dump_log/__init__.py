"""The command ``millstream dump-log``: what stands in a log's files, in the words of Kafka's DumpLogSegments.

Files are only read: nothing is locked, repaired or written, so that a running broker's
directory may be looked at.
"""
