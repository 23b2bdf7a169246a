"""Mirroring: topics of one cluster copied into another, whole batches as they are, and proved equal.

config     mm2.properties → settings of a link      source     what is copied: batches, in order, exactly once
filters    which topics and configs                 position   where the copy goes on after a stop or a kill
policy     what a topic is called over there        offsets    the offset-syncs topic
passing    one batch from cluster to cluster        partition  what is on its way, and what was acked
topics     remote topics and their configs          placing    positions of many partitions at a time
quarantine partitions that cannot go on             link       topics, clients, the life of a flow
links      flows side by side, opened again
verify     two topics equal, or the first difference (digest)            cli   `millstream mirror`
"""
