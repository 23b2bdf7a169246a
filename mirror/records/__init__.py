"""MirrorMaker 2's records, byte for byte, which Java's MirrorMaker and MirrorClient read, without I/O.

`offset_sync`, `checkpoint` and `heartbeat` are one record each. `fields` packs and unpacks the fields of all.
"""
