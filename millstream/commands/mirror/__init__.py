"""The command `millstream mirror`: what mirror itself has, and `verify`."""
