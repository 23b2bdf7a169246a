"""The programs that `benchmarks.streams_peers` runs, one file per library, independent of our packages.

Each is started as `PROGRAM WORK BOOTSTRAP APPLICATION FOLDER RECORDS`, reads `RECORDS` records of the topic
`records`, and prints one line of JSON, `{"seconds": ..., "cpu": ..., "records": ...}`. `records` counts the
records from after the first `WARM` to the last one. `seconds` and `cpu` are wall clock and CPU time of the
process for these records.
"""
