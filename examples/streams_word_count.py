"""The word count: lines in, words and their counts out, through a repartition topic.

    python examples/streams_word_count.py localhost:9092

reads ``lines``, writes ``words`` (string keys, 64-bit counts) until Ctrl-C.
"""

from __future__ import annotations

import sys

from streams import KafkaStreams, StreamsBuilder, Topology


def topology(lines: str = "lines", words: str = "words") -> Topology:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    counts = (
        builder.stream(lines)
        .flat_map_values(lambda line: line.lower().split())
        .group_by(lambda key, word: word)
        .count(store="counts")
    )
    counts.to_stream().to(words)
    return builder.build()


if __name__ == "__main__":
    KafkaStreams(topology(), application_id="word-count", bootstrap_servers=sys.argv[1]).run()
