# Each target sets up the virtual environment that it needs; none depends on another having been run.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help demo test coverage test-scale test-wheel check-tag browser fuzz lint docs bench reproduce clean

help:
	@echo "make demo       set up, and show parabit on the documentation of the packages installed here"
	@echo "make test       set up, and run ruff, mypy and the tests"
	@echo "make coverage   set up, and run the tests with the lines of src that they do not reach; it fails below 90%"
	@echo "make test-scale set up, and run the tests with a Ray cluster and Milvus"
	@echo "make test-wheel build a wheel and an sdist in dist, and use the wheel in an empty environment elsewhere;"
	@echo "                EXTRAS=web,pdf installs and uses these extras too"
	@echo "make check-tag  TAG=v0.1.0 fails unless this is the version in pyproject.toml"
	@echo "make browser    set up, and fetch a Chromium for the tests of the search page, which are skipped without one"
	@echo "make fuzz       set up, and try inputs that nobody would give, 20 seconds for each of the places that take"
	@echo "                some; FUZZ_SECONDS=600 tries longer, FUZZ_SEED=7 tries others. What fails is kept in .fuzz"
	@echo "make docs       set up, and build the documentation in site"
	@echo "make lint       set up, and run ruff and mypy alone"
	@echo "make bench      set up, and run the benchmarks; results go to benchmarks/results"
	@echo "make reproduce  set up, and run the paper's experiments again; the report goes to results"
	@echo "make clean      remove the virtual environment and caches"

demo: $(VENV)/demo
	$(BIN)/parabit demo

# One thread per process: the test processes share the cores.
test: lint
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --maxprocesses 4

coverage: $(VENV)/dev
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --maxprocesses 4 --cov=parabit --cov-report=term-missing:skip-covered --cov-fail-under=90

test-scale: $(VENV)/dev
	OMP_NUM_THREADS=1 $(BIN)/pytest -m scale

test-wheel: $(BIN)/python
	rm -rf dist
	$(PIP) build
	$(BIN)/python -m build --outdir dist
	$(BIN)/python tests/try_wheel.py dist/*.whl $(EXTRAS)

check-tag:
	@grep -Fqx "version = \"$${TAG#v}\"" pyproject.toml \
	  || { echo "the tag '$$TAG' is not the version in pyproject.toml"; exit 1; }

browser: $(VENV)/dev
	$(BIN)/playwright install chromium

# What a case is, and how one that failed is tried again: tests/attacks/fuzz.py.
fuzz: $(VENV)/dev
	OMP_NUM_THREADS=1 FUZZ_SECONDS=$${FUZZ_SECONDS:-20} $(BIN)/python tests/attacks/fuzz.py --seed $${FUZZ_SEED:-0}

docs: $(VENV)/dev
	$(BIN)/mkdocs build --strict

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/bench
	$(BIN)/python benchmarks/quality.py --peers
	$(BIN)/python benchmarks/queries.py
	$(BIN)/python benchmarks/search_speed.py
	$(BIN)/python benchmarks/index_speed.py
	$(BIN)/python benchmarks/index_keeping.py
	$(BIN)/python benchmarks/learn_speed.py
	$(BIN)/python benchmarks/text_speed.py
	$(BIN)/python benchmarks/read_folder.py
	$(BIN)/python benchmarks/evaluate_speed.py
	$(BIN)/python benchmarks/serve_load.py
	$(BIN)/python benchmarks/choices.py
	$(BIN)/python benchmarks/pages.py

reproduce: $(VENV)/paper
	$(BIN)/parabit reproduce all -o results

clean:
	rm -rf $(VENV) site .fuzz .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "parabit needs Python 3.11 or newer; name one with: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# An empty file for each set of packages, newer than what it was installed from.
$(VENV)/demo $(VENV)/dev $(VENV)/bench $(VENV)/paper: $(VENV)/%: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing parabit[$*] in $(VENV) ..."
	$(PIP) --editable '.[$*]'
	@touch $@
