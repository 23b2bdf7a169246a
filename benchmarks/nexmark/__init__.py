"""Nexmark: queries over the events of an auction house, written as users of Kafka Streams would write them.

`events` says what is in the topics, `generator` makes it; the queries stand in `stateless`, `local_items`,
`winning_bids`, `hot_items`, `new_users` and `bidders`, what must come out of each in `model`; `queries` lists
them. `python -m benchmarks.nexmark` runs them.
"""
