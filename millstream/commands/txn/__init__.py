"""The command `millstream txn`: transactions, and those that hang."""
