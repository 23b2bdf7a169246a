"""Spark: `format("millstream")` reads the log; the sink hands it offset ranges to write a table.

    source      the Python data source          sink     the Connect connector: plan, verify, commit
    ranges      offsets → input partitions      table    the Parquet table: manifests, one atomic commit
    arrow       record batches → Arrow          driver   the child process that holds the Spark session
    options     the Kafka source's options      jobs     what the driver process is asked to do

Only `source`, `session`, `jobs`, `rows` and `reading` import pyspark, and nothing is imported here:
executors load `source` alone.
"""
