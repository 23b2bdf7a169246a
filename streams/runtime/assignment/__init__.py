"""The group's assignment: which member runs which task, and where state is hosted."""
