"""The command `millstream spark`: the tables that the Spark sink writes."""
