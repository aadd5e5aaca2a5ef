# On a fresh machine `make demo` and `make test` do everything, set-up included.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

MCP1 = $(VENV)/mcp1

.PHONY: demo test mcp1 lint check docs reference browser screenshots dist soak matrix scorecard constraints clean

demo: $(VENV)/.installed
	$(BIN)/afterword demo

# The compiled modules are kept, also where the environment has Python write none: each process would compile all of them.
test: $(VENV)/.installed
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal --processor-time

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(if $(wildcard $(BIN)/hadolint),$(BIN)/hadolint Dockerfile,# hadolint has no package for this machine)

# Version 1 of mcp, which AutoGen's McpWorkbench needs, beside version 2: the test of the example is skipped without it.
mcp1: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --target $(MCP1) 'mcp>=1.11,<2'

check: lint test

# The site, in build/site: strict, without a network. To read it with search: python3 -m http.server --directory build/site
docs: $(VENV)/.installed
	PYTHONPATH=docs $(BIN)/python -m generator stage build/pages
	$(BIN)/zensical build --strict --clean

# The parts of pages that are made from the code: commands and settings.
reference: $(VENV)/.installed
	PYTHONPATH=docs $(BIN)/python -m generator reference

# What the browser tests and the screenshots need; without it the tests are skipped, but not in CI.
APT = $(if $(filter 0,$(shell id -u)),,sudo) apt-get

browser:
	command -v chromium || ($(APT) update && $(APT) install --yes --no-install-recommends chromium fonts-dejavu-core)

# The pictures in docs/pages.md, in light and dark.
screenshots: $(VENV)/.installed
	PYTHONPATH=tests/support $(BIN)/python tests/support/screenshots.py docs/images/pages

# The wheel and the sdist, built and checked. The wheel is installed from the package index in an empty environment.
dist: $(VENV)/.installed
	rm -rf dist
	$(BIN)/python -m hatchling build --directory dist
	AFTERWORD_TEST_DIST=dist $(BIN)/python -m pytest -n 0 -m "" tests/integration/test_distribution.py

soak: $(VENV)/.installed
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto -m "soak or hypothesis" --hypothesis-profile soak

# The lowest and the highest supported versions, on each Python at hand. It is not part of CI: it takes
# half an hour on a quiet machine, and more than an hour on a busy one.
matrix: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/python benchmarks/version_matrix.py --out benchmarks/version_matrix.md

# The README's scorecard, from recorded replies: no model, no network. SCENARIOS lies beside the checkout.
SCENARIOS ?= ../shared/data/scenarios

scorecard: $(VENV)/.installed
	AFTERWORD_PROFILE=configs/offline.toml $(BIN)/afterword eval $(SCENARIOS) \
		--replay tests/recorded/scenarios.jsonl --into README.md

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# pip would compile with one core. Some packages hold files that cannot be compiled.
$(VENV)/.installed: constraints.txt pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes --no-deps -r constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib src || true
	touch $@

# The whole resolved set with its hashes; no index host, no download address.
constraints: $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--no-annotate --extra dev --output-file constraints.txt pyproject.toml

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build
