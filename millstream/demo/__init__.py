"""The main job: New York's flights of 2013 through every part of Millstream."""
