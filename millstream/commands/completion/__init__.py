"""The command `millstream completion`: what shells need to complete the command's words."""
