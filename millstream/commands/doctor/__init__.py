"""The command `millstream doctor`: whether this machine has what a broker and its companions need."""
