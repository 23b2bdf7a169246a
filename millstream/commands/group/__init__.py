"""The command `millstream group`: groups of consumers, their members, offsets and lag."""
