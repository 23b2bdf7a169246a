# Short targets; `make demo` and `make test` are all a newcomer needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
COMPILED := $(VENV)/.compiled
SOURCES := $(addsuffix .py,$(subst .,/,$(shell sed -n 's/^    "\([a-z_.0-9]*\)",$$/\1/p' setup.py)))
# Two more than cores, since tests wait for their brokers; four at most: each worker starts its own. One more for
# the whole suite, where more wait longer, for sessions that end and members that are missed.
test-all: MORE := 3
MORE := 2
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + $(MORE))
# Tests start hundreds of Python processes; without a cache of byte code each one compiles all it imports, which is
# a third of all the time the tests take. Empty is "write it" to Python.
export PYTHONDONTWRITEBYTECODE :=
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses $(shell expr 2 + $(MORE)) --dist loadscope --no-loadscope-reorder

.PHONY: demo test test-all test-uncompiled test-sanitized histories check venv wheel release format docs bench clean

demo: venv
	$(BIN)/millstream demo

# A sample of everything: fewer examples and histories, nothing that needs Apache Kafka, Go or Node.
test: venv
	MILLSTREAM_DEPTH=$${MILLSTREAM_DEPTH:-0.2} $(PYTEST) $(PYTEST_ARGS)

test-all: venv
	$(PYTEST) $(PYTEST_ARGS)

# The compiled modules from their sources, as where there is no compiler; then compiled with checks for each access
# to memory and each overflow, under the tests that feed them rubbish.
RECORD_TESTS := tests/kafka_client/records tests/fuzz tests/kafka_client/test_partitioner.py tests/kafka_client/wire
test-uncompiled: venv
	MILLSTREAM_NO_EXTENSIONS=1 $(PYTEST) $(PYTEST_ARGS) $(RECORD_TESTS) tests/logd/api/test_produce_fetch.py \
	    tests/streams/processors/test_folding.py tests/streams/state/test_state.py \
	    tests/streams/state/test_join_records.py tests/streams/dsl/test_stream_joins.py

test-sanitized: venv
	@PYTHON=$(BIN)/python sh .ci/sanitized $(RECORD_TESTS)

# Random histories by seeds from 0 on, the same in every run, many more than test-all plays. What they need is
# cores: whoever has nothing to do takes some of another's.
HISTORIES := replication cluster_simulation
histories: venv
	MILLSTREAM_DEPTH=$${MILLSTREAM_DEPTH:-20} $(PYTEST) --dist worksteal $(PYTEST_ARGS) \
	    $(HISTORIES:%=tests/faults/%/test_histories.py)

check: venv
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python .ci/plain_english.py
	@git ls-files | xargs $(BIN)/codespell

venv: $(STAMP) $(COMPILED)

# The compiled modules again after an edit; without a C compiler a line says so, and they run as plain Python. Then
# the next `make` tries again, since there may be a compiler by then.
$(COMPILED): setup.py $(STAMP) $(SOURCES)
	@$(BIN)/python setup.py --quiet build_ext --inplace --parallel 4
	@if ls $(basename $(firstword $(SOURCES))).*.so >/dev/null 2>&1; then touch $@; fi

$(STAMP): pyproject.toml .ci/prerequisites
	@sh .ci/prerequisites $(PYTHON)
	$(PYTHON) -m venv $(VENV)
	@echo "Installing Millstream with everything the demo and the tests use. PySpark is a large"
	@echo "source package (about 450 MB) that pip builds into a wheel: the first time takes a minute or two."
	$(BIN)/python -m pip install --upgrade pip
	$(BIN)/python -m pip install --editable ".[dev]"
	@touch $(STAMP)

format: venv
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The generated pages, then the site of all pages in build/site.
docs: venv
	$(BIN)/python docs/generate.py
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -b html -d build/doctrees docs build/site

bench: venv
	$(BIN)/python -m benchmarks

# A wheel for each supported Python that is on this machine, and the source package, into dist/.
PYTHONS ?= python3.11 python3.12 python3.13 python3.13t python3.14 python3.14t
wheel: venv
	@PYTHON=$(BIN)/python sh .ci/wheels $(PYTHONS)

# Wheels and source package of a clean checkout, each installed and tried in an environment of its own; then the tag.
release: venv
	@PYTHON=$(BIN)/python sh .ci/release $(PYTHONS)

clean:
	find kafka_client streams -name '*.so' -delete
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
