"""The command `millstream profile`: named clusters."""
