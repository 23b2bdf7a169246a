"""What every command that talks to a cluster shares: options, session, output, exit status."""
