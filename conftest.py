"""Shapes and types in signatures are checked while tests run."""

from jaxtyping import install_import_hook

# `space` and `settings` take what users write (an int for a float) and check it themselves.
install_import_hook(
    [
        "optpair.cube",
        "optpair.gp",
        "optpair.maximize",
        "optpair.pairs",
        "optpair.acquisition",
        "optpair.failures",
        "optpair.stages",
        "optpair.engine",
    ],
    "beartype.beartype",
)
