"""The command line: `optpair`."""
