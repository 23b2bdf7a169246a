"""Connect: a worker that moves data between the log and other systems through plugins."""
