"""The context of a request, and the outcomes of serving it."""
