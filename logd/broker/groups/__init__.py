"""The group coordinator's shell: its log, its clocks, and who waits for an answer."""
