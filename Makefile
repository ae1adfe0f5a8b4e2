# Every target sets up what it needs: a virtual environment in .venv, from Python (3.11 or later) and PyPI alone, without root.
#   make demo        watch mcpspy record and show a small MCP server and client
#   make test        the tests that need Python and PyPI alone, in four minutes
#   make interop     the tests with programs of npm and Debian, after `make npm`
#   make check       lint, types and tests: what a change has to pass
#   make soak        the full counts: every bit flipped, hundreds of kills, a million messages
#   make npm         the npm programs that the tests marked `npm` start, and mitmproxy, into build
#   make bench-stdio the stdio benchmark; see benchmarks/README.md

PYTHON ?= $(firstword $(foreach name,python3 python3.13 python3.12 python3.11,$(shell \
	command -v $(name) >/dev/null && $(name) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(name))))
BIN := .venv/bin
# Twice two cores: many tests wait for something, and whoever is done takes from the others.
WORKERS ?= 4
PYTEST_ARGS ?=

.PHONY: demo test interop check lint types soak npm bench-stdio format clean
.DEFAULT_GOAL := check

demo: .venv/.installed
	$(BIN)/mcpspy demo

test: .venv/.tested
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not npm and not debian and not soak" $(PYTEST_ARGS)

interop: .venv/.tested
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "(npm or debian) and not soak" $(PYTEST_ARGS)

check: lint types test

lint: .venv/.tested
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: .venv/.tested
	$(BIN)/mypy

format: .venv/.tested
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

soak: .venv/.tested
	MCPSPY_TIER=full $(BIN)/pytest -n $(WORKERS) -m "soak or tiered or hypothesis" --timeout 3600 $(PYTEST_ARGS)

npm: build/npm/.installed build/inspector/.installed build/mitmproxy/.installed

bench-stdio: .venv/.installed
	$(BIN)/python -m benchmarks.bench_stdio $(BENCH_ARGS)

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

# The environment, in three stamps: it exists, mcpspy runs in it, the tests run in it.
.venv/.created:
	@test -n "$(PYTHON)" || { echo "mcpspy needs Python 3.11 or later; name it with: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "$(PYTHON) comes without ensurepip, which makes virtual environments (Debian: apt-get install python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

.venv/.installed: pyproject.toml | .venv/.created
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/.tested: pyproject.toml | .venv/.created
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch .venv/.installed $@

# Node 20 runs mermaid 12, which asks for Node 22: hence no strict engines.
build/npm/.installed: tests/npm/package.json
	mkdir -p build/npm
	cp tests/npm/package.json build/npm/
	cd build/npm && npm install --no-audit --no-fund --no-package-lock --engine-strict=false
	touch $@

# The inspector's line 2 wants Node 22, which comes as a package of its own.
build/inspector/.installed: tests/npm/inspector/package.json
	mkdir -p build/inspector
	cp tests/npm/inspector/package.json build/inspector/
	cd build/inspector && npm install --no-audit --no-fund --no-package-lock
	touch $@

# Which reads the HAR files that we write; in an environment of its own, for it pins what it needs.
build/mitmproxy/.installed:
	$(PYTHON) -m venv build/mitmproxy
	build/mitmproxy/bin/pip install --quiet --disable-pip-version-check 'mitmproxy>=11,<13'
	touch $@
