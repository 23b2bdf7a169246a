"""The log directories: which serve, how they are opened, and where the metadata journal is."""
