"""Positions of the source's consumer groups in the target, as MirrorMaker's checkpoints.

`latest` decides which checkpoints are new. `emitter` reads groups' offsets and writes checkpoints;
`group_offsets` commits them in the target.
"""
