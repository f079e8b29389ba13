"""Timing of asks: seconds, stages, and the limits that the machine sets."""
