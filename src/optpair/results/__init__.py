"""What people get: recommendations, predictions, beliefs and fronts, in their units."""
