"""The cluster's metadata in ZooKeeper, in Kafka 3's znodes; the only room that imports kazoo.

`session` asks and answers, `lease` says until when a session is surely alive, `paths` and `znodes` know what
is where. On them stand `election`, `registration`, `store` and `watches`.
"""
