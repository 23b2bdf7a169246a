"""A stock Faust application that counts words, running against ``logd`` as it would against any Kafka.

    pip install "millstream[faust]"
    millstream logd &
    python examples/faust_app.py worker --without-web
    python examples/faust_app.py send lines '"the quick brown fox jumps over the lazy dog"'

The counts live in RocksDB (through rocksdict) and in a changelog topic: a worker that lost its folder reads
them back from there. Every new count goes to the topic ``word-counts``.
"""

import os

import faust

app = faust.App(
    "word-count",
    broker=os.environ.get("BROKER", "kafka://127.0.0.1:9092"),
    store="rocksdb://",
    datadir=os.environ.get("DATA_FOLDER", "word-count-data"),
    value_serializer="json",
    consumer_auto_offset_reset="earliest",
    broker_commit_interval=0.5,
)

lines = app.topic("lines", value_type=str)
words = app.topic("words", key_type=str, value_type=str, partitions=4, internal=True)
word_counts = app.topic("word-counts", key_type=str, value_type=int)
counts = app.Table("counts", default=int, partitions=4, options={"driver": "rocksdict"})


@app.agent(lines)
async def count_words(stream):
    """Split every line and hand each word to the worker that counts it."""
    async for line in stream:
        for word in line.lower().split():
            await words.send(key=word, value=word)


@app.agent(words)
async def count_word(stream):
    """Count the words; equal words come to the same worker."""
    async for word in stream:
        counts[word] += 1
        await word_counts.send(key=word, value=counts[word])


if __name__ == "__main__":
    app.main()
