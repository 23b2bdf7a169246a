"""The shared parts of commands that talk to a cluster: options, session, output, exit status."""
