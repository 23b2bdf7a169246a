"""Dead letter queues from outside the worker: list, show, retry and drop the records in them."""
