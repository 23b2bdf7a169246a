"""The command `millstream log-dirs`: brokers' log directories."""
