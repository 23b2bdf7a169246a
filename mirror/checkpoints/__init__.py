"""Positions of the source's consumer groups in the target, as MirrorMaker's checkpoints.

`latest` decides which checkpoints are new. `emitter` reads groups' offsets and writes checkpoints;
`groups` finds the groups, and `group_offsets` commits offsets in the target.
"""
