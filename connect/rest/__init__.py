"""The REST interface of a worker, with Kafka Connect's paths, documents and status codes."""
