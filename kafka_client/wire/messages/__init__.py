"""Every message, declared once over all its versions; one file per API, and none is loaded for another."""
