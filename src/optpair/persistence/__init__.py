"""Files and documents: what outlives the process."""
