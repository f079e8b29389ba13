"""Shapes and types in signatures are checked while tests run, unless told otherwise.

`OPTPAIR_SHAPES=unchecked` is for tests of whole searches, which are five times as fast without.
"""

import os
import signal

# A shell's background job ignores Ctrl-C and so would the processes that tests send it to.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["postgres_server"]

collect_ignore_glob = ["*conftest.py"]  # several of one name, and no doctest in any

# `problem`, `trials` and `settings` take what users write (an int for a float) and check it; what a
# chain calls thousands of times (priors, tables, the likelihood) has tests of its own shapes.
if os.environ.get("OPTPAIR_SHAPES") != "unchecked":
    from jaxtyping import install_import_hook

    install_import_hook(
        [
            "optpair.gp.conditioned",
            "optpair.gp.inference",
            "optpair.gp.kernels",
            "optpair.gp.linalg",
            "optpair.gp.mixture",
            "optpair.gp.paths",
            "optpair.gp.posterior",
            "optpair.gp.process",
            "optpair.cube",
            "optpair.optima",
            "optpair.acquisition",
            "optpair.engine.model",
            "optpair.engine.engine",
            "optpair.engine.fitting",
            "optpair.engine.candidates",
            "optpair.engine.sampling",
            "optpair.engine.optimum",
            "optpair.engine.query",
            "optpair.engine.design",
            "optpair.engine.step",
            "optpair.engine.answers",
            "optpair.engine.effects",
        ],
        "beartype.beartype",
    )
