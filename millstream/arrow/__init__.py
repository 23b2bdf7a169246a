"""Records of topics as Arrow record batches: `millstream.read`.

The extra `arrow` is needed. Record batches are decoded by the reader that Spark's executors use.
"""
