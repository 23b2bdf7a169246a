"""Answers what a failover of one flow would cost now, and moves consumer groups to the target.

`facts` asks both clusters, `uncopied` counts records that are not copied. `plan` and `group_places` draw the
conclusions without I/O, `runbook` lists the steps, `offsets` commits groups' offsets in the target.
"""
