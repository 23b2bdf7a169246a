"""The transaction coordinator's shell: its log, its markers, and who waits for an answer."""
