"""The live page: searches that are still running, served on this machine."""
