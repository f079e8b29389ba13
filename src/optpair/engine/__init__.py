"""The engine: from data to the next point, and to answers."""
