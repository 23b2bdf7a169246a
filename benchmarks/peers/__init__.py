"""The programs `benchmarks.streams_peers` runs, one per library, each a file that needs nothing else of ours.

Each is started as `PROGRAM WORK BOOTSTRAP APPLICATION FOLDER RECORDS`, takes in so many records of the
topic `records`, and prints one line of JSON, `{"seconds": ..., "cpu": ..., "records": ...}`: wall clock and
CPU time of the process between the first `WARM` records and the last, and how many records that was.
"""
