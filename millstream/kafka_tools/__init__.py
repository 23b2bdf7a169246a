"""Kafka's command-line tools by their scripts' names, with the Java tools' options, output and exit status.

Each tool is a module or folder of its own, listed in `table.py`. A tool parses its options (`options`) and
prints as the Java tool does. The requests to the cluster are made by `millstream.commands.topic`,
`millstream.commands.group` and the like, or by `kafka_client`.
"""
