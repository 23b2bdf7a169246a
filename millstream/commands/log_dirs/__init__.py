"""The command `millstream log-dirs`: brokers' log folders."""
