"""A broker among others: connections between them, the feed of the controller, who leads what."""
