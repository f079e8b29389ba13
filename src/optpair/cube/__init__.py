"""The unit cube: its legal points, regions of it, candidates, and climbs."""
