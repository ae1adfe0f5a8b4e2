# Every target sets up what it needs: a virtual environment in .venv, from Python (3.11 or later) and PyPI alone, without root.
#   make demo        watch mcpspy record and show a small MCP server and client
#   make test        the tests that need Python and PyPI alone, in about five minutes on two cores
#   make lowest      the same tests with the lowest versions of what mcpspy depends on
#   make more        those of them that count or choose, with five times the counts and every choice
#   make interop     the tests with programs of npm and Debian, after `make npm`
#   make check       lint, types and tests: what a change has to pass
#   make soak        the full counts: every bit flipped, hundreds of kills, a million messages; and the next four
#   make ways        the tests of the HTTP tap without its short way for usual messages, and with it from the second message on
#   make data-path   the tests of the data path of a tap: without mcpspy/speedups.c, and with it (needs a C compiler)
#   make mac         the tests of the data path as on macOS, as far as Linux can play it (tests/systems)
#   make windows     the tests of the data path and of the verbs as on Windows, likewise
#   make asan        the tests of mcpspy/speedups.c under the address sanitizer (needs gcc)
#   make calendar    the tests with the clock a day, a week and half a year ahead: none may depend on the date
#   make npm         what the tests marked `npm` start, into build: npm programs, mitmproxy, MCPHawk, Spark,
#                    Arize Phoenix, and other generations of the SDKs
#   make bench-stdio the stdio benchmark; see benchmarks/README.md
#   make bench-reading the benchmarks of commands that read captures, which take about an hour

PYTHON ?= $(firstword $(foreach name,python3 python3.13 python3.12 python3.11,$(shell \
	command -v $(name) >/dev/null && $(name) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(name))))
BIN := .venv/bin
# Twice two cores: many tests wait for something, and whoever is done takes from the others.
WORKERS ?= 4
PYTEST_ARGS ?=
# Tests start mcpspy hundreds of times: without files of bytecode, which some images turn off, each start compiles it again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test lowest more interop check lint types soak calendar ways data-path mac windows asan npm bench-stdio bench-reading reader-old format clean
.DEFAULT_GOAL := check

demo: .venv/.installed
	$(BIN)/mcpspy demo

test: .venv/.tested
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not npm and not debian and not soak" $(PYTEST_ARGS)

lowest: build/lowest/.installed
	build/lowest/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "not npm and not debian and not soak" $(PYTEST_ARGS)

more: .venv/.tested
	MCPSPY_TIER=more $(BIN)/pytest -n $(WORKERS) --dist worksteal \
	  -m "(tiered or hypothesis) and not npm and not debian and not soak" $(PYTEST_ARGS)

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
	$(MAKE) ways data-path mac windows asan calendar DATA_PATH=soak

# The HTTP tap's tests on the general path alone, and with the short way taken as early as can be (mcpspy/live/http/usual.py).
ways: .venv/.tested
	for way in general short; do \
	  PYTHONPATH=tests/ways MCPSPY_TESTED_WAY=$$way $(BIN)/pytest -n $(WORKERS) --dist worksteal \
	    -m "not npm and not debian and not soak" tests/live/http tests/interop/test_http_*.py $(PYTEST_ARGS) || exit 1; \
	done

# With DATA_PATH=soak, those too that take long, and those with programs of others.
DATA_PATH := gate
data-path: .venv/.tested mcpspy/speedups.abi3.so
	for pure in 1 0; do \
	  MCPSPY_PURE=$$pure MCPSPY_TIER=$(if $(filter soak,$(DATA_PATH)),full,sample) $(BIN)/pytest -n $(WORKERS) --dist worksteal \
	    -m "data_path $(if $(filter soak,$(DATA_PATH)),,and not npm and not debian and not soak)" $(PYTEST_ARGS) || exit 1; \
	done

# What macOS lacks is taken away, and what it does otherwise is done so. With DATA_PATH=soak, all tests.
mac: .venv/.tested
	PYTHONPATH=tests/systems MCPSPY_TESTED_SYSTEM=darwin $(BIN)/pytest -n $(WORKERS) --dist worksteal \
	  -m "$(if $(filter soak,$(DATA_PATH)),,data_path and )not npm and not debian and not soak" $(PYTEST_ARGS)

# Likewise for Windows. tests/systems/lacking.py names the tests that need what it has not.
windows: .venv/.tested
	PYTHONPATH=tests/systems MCPSPY_TESTED_SYSTEM=win32 $(BIN)/pytest -n $(WORKERS) --dist worksteal --timeout-method thread \
	  -m "not npm and not debian and not soak" $$(cat tests/systems/windows.txt) $(PYTEST_ARGS)

# An editable install makes it, and goes on without a compiler: then this fails.
mcpspy/speedups.abi3.so: mcpspy/speedups.c hatch_build.py | .venv/.tested
	$(BIN)/python -m pip install --quiet --no-deps --force-reinstall --editable .
	test -e $@

# In a copy, for what is compiled so cannot be imported without the sanitizer.
asan: .venv/.tested
	rm -rf build/asan && mkdir -p build/asan && cp -r mcpspy tests pyproject.toml build/asan
	cd build/asan && gcc -std=c11 -g -O1 -Wall -Wextra -Werror -Wno-unused-parameter -fsanitize=address,undefined \
	  -fno-sanitize-recover=undefined -shared -fPIC -I$$(../../$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))') \
	  mcpspy/speedups.c -o mcpspy/speedups.abi3.so -lz
	cd build/asan && LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
	  ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc MCPSPY_NO_SKIP=1 MCPSPY_TIER=more \
	  ../../$(BIN)/python -m pytest -n 0 -m "" -p no:cacheprovider tests/test_speedups.py tests/live/http/test_steady.py tests/capture/file/test_writer.py --timeout 3600

FAKETIME_LIBRARY := build/faketime/lib/python*/site-packages/libfaketime/vendor/libfaketime/src/libfaketime.so.1

# Only the wall clock moves: threads wait by the monotonic one, and libfaketime breaks those waits if it adjusts them.
# Two files are left out: one compares the clock with a file's time, which the kernel stamps; the other counts the files
# that a process has open, and libfaketime opens one.
calendar: .venv/.tested build/faketime/.installed
	for offset in +1d +7d +182d; do \
	  LD_PRELOAD=$$(echo $(CURDIR)/$(FAKETIME_LIBRARY)) FAKETIME=$$offset FAKETIME_NO_CACHE=1 \
	  FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_FORCE_MONOTONIC_FIX=0 \
	  $(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not npm and not debian and not soak" \
	    --ignore tests/cli/test_since.py --ignore tests/live/stdio/test_descriptors.py $(PYTEST_ARGS) || exit 1; \
	done

npm: build/npm/.installed build/npm2/.installed build/inspector/.installed build/agents/.installed \
  build/mitmproxy/.installed build/mcphawk/.installed build/packaging/.installed build/mcp1/.installed build/mcp2/.installed \
  build/spark/.installed build/phoenix/.installed

bench-stdio: .venv/.installed
	$(BIN)/python -m benchmarks.bench_stdio $(BENCH_ARGS)

bench-reading: .venv/.installed
	$(BIN)/python -m benchmarks.reading $(BENCH_ARGS)

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

# The environment, in three stamps: it exists, mcpspy runs in it, the tests run in it.
.venv/.created:
	@test -n "$(PYTHON)" || { echo "mcpspy needs Python 3.11 or later; name it with: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "$(PYTHON) comes without ensurepip, which makes virtual environments (Debian: apt-get install python3-venv)" >&2; exit 1; }
	@echo "making a virtual environment in .venv"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

.venv/.installed: pyproject.toml | .venv/.created
	@echo "installing mcpspy and the packages that it needs"
	$(BIN)/python -m pip install --progress-bar on --editable .
	touch $@

.venv/.tested: pyproject.toml mcpspy/speedups.c hatch_build.py | .venv/.created
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch .venv/.installed $@

# Node 20 runs mermaid 12, which asks for Node 22: hence no strict engines.
build/npm/.installed: tests/npm/package.json
	mkdir -p build/npm
	cp tests/npm/package.json build/npm/
	cd build/npm && npm install --no-audit --no-fund --no-package-lock --engine-strict=false
	touch $@

# The second generation of the TypeScript SDK, whose zod is not that of the first.
build/npm2/.installed: tests/npm/second/package.json
	mkdir -p build/npm2
	cp tests/npm/second/package.json build/npm2/
	cd build/npm2 && npm install --no-audit --no-fund --no-package-lock
	touch $@

# The inspector's line 2 wants Node 22, which comes as a package of its own.
build/inspector/.installed: tests/npm/inspector/package.json
	mkdir -p build/inspector
	cp tests/npm/inspector/package.json build/inspector/
	cd build/inspector && npm install --no-audit --no-fund --no-package-lock
	touch $@

# Claude Code and Codex are binaries of several hundred megabytes.
build/agents/.installed: tests/npm/agents/package.json
	mkdir -p build/agents
	cp tests/npm/agents/package.json build/agents/
	cd build/agents && npm install --no-audit --no-fund --no-package-lock
	touch $@

# Builds a library, so it needs gcc and make.
build/faketime/.installed:
	$(PYTHON) -m venv build/faketime
	build/faketime/bin/pip install --quiet --disable-pip-version-check 'libfaketime>=3.0.1,<4'
	touch $@

# Which reads the HAR files that we write; in an environment of its own, for it pins what it needs.
build/mitmproxy/.installed:
	$(PYTHON) -m venv build/mitmproxy
	build/mitmproxy/bin/pip install --quiet --disable-pip-version-check 'mitmproxy>=11,<13'
	touch $@

# Whose databases are imported; in an environment of its own, for it needs a generation of the SDK.
build/mcphawk/.installed:
	$(PYTHON) -m venv build/mcphawk
	build/mcphawk/bin/pip install --quiet --disable-pip-version-check 'mcphawk>=1.0,<2'
	touch $@

# A library for the environment of the tests, which has the pyarrow that it needs; it is too large for the extra `test`.
build/spark/.installed: | .venv/.created
	rm -rf build/spark
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --target build/spark pyspark==4.3.0 'pandas>=2.2,<3'
	touch $@

# A collector; in an environment of its own, for it pins what it needs.
build/phoenix/.installed:
	$(PYTHON) -m venv build/phoenix
	build/phoenix/bin/pip install --quiet --disable-pip-version-check arize-phoenix==20.26.1
	touch $@

# What builds the packages, checks them, and runs mcpspy out of them as users do.
build/packaging/.installed:
	$(PYTHON) -m venv build/packaging
	build/packaging/bin/pip install --quiet --disable-pip-version-check 'build>=1.3,<2' 'twine>=6,<8' 'uv>=0.9,<0.14' 'pipx>=1.8,<2' \
	  'check-jsonschema>=0.33,<1'
	touch $@

# The reader of captures as it was before it was rebuilt: tests/oracle compares what both tell.
reader-old:
	rm -rf build/reader-old
	git archive --prefix build/reader-old/ reader-old mcpspy | tar x

# The lowest versions that pyproject.toml allows; the newest are in .venv.
build/lowest/.installed: pyproject.toml build/packaging/.installed
	$(PYTHON) -m venv --clear build/lowest
	build/packaging/bin/uv pip install --quiet --python build/lowest --resolution lowest-direct --editable '.[test]'
	touch $@

# The first generation of the Python SDK, and fastmcp on either: exactly as the tests met them.
build/mcp1/.installed:
	$(PYTHON) -m venv build/mcp1
	build/mcp1/bin/pip install --quiet --disable-pip-version-check mcp==1.30.0 fastmcp==3.4.10
	touch $@

build/mcp2/.installed:
	$(PYTHON) -m venv build/mcp2
	build/mcp2/bin/pip install --quiet --disable-pip-version-check mcp==2.3.0 fastmcp==4.1.2
	touch $@
