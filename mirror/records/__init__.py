"""MirrorMaker 2's records, byte for byte, and the records of delta runs beside them. Bytes in, bytes out.

`offset_sync`, `checkpoint` and `heartbeat` are records of MirrorMaker 2, which Java's MirrorMaker and
MirrorClient read. `delta_run` is a record of Millstream. `fields` packs and unpacks the fields of all.
"""
