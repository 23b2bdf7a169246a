"""Translation of offsets by offset syncs, without I/O.

`slots` has the syncs of one partition, `store` those of all. `mirror.offsets` reads and writes their topic.
"""
