"""The log of a daemon on the standard error: its format, and the levels of its loggers."""
