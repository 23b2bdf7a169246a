"""The cluster's metadata in ZooKeeper, in Kafka 3's znodes; the only package that imports kazoo.

`session` sends requests, `lease` tells until when a session is surely alive, and `paths` and `znodes` have
the locations and contents of znodes. `election`, `registration`, `store` and `watches` use these modules.
"""
