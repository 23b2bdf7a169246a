"""Tools for authors of connectors and pipelines: new plugins, and tests of pipelines without a broker."""
