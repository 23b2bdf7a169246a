"""Mirroring: topics of one cluster copied into another, whole batches as they are, and proved equal.

config     mm2.properties → settings of a link      source     what is copied: batches, in order, exactly once
filters    which topics and configs                 position   where the copy goes on after a stop or a kill
policy     what a topic is called over there        offsets    the offset-syncs topic
passing    one batch from cluster to cluster        link       topics, clients, the life of a flow
verify     two topics equal, or the first difference (digest)            cli   `millstream mirror`
"""
