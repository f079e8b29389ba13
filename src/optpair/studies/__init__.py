"""Studies from a file: what `optpair run study.toml` and its kin do. Optuna keeps the trials."""
