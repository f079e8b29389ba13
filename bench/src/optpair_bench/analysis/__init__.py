"""Statistics of rows, the paper's claims beside them, and the summary over all tasks."""
