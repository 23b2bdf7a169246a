"""Topics: the catalog, their settings, their replicas here, and the view that clients get."""
