"""`python -m optpair`: the command line."""

from optpair.cli.app import app

if __name__ == "__main__":
    app(prog_name="optpair")
