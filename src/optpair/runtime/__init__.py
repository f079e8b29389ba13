"""What the house stands on: shapes, random streams, threads, locks and standard error."""
