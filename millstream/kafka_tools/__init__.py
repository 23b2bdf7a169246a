"""Kafka's command-line tools by their scripts' names, with the Java tools' options, output and exit status.

Each tool is a module or folder of its own, listed in `table.py`. What it asks the cluster is the work of
`millstream.topic`, `millstream.group` and their like, or of `logd.client`; what is here is how Kafka's tools
read their arguments (`arguments.py`), and what they say.
"""
