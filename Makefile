# Each target sets up what it needs and is quick when nothing changed.
VENV := .venv
PYTHON ?= python3
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-fast lint docs live bench-read bench-hook bench-cycle bench-score bench-cli bench-fit bench-predict bench-predict-sim verify-predict bench-sim bench-research verify-sim fuzz engine cluster cluster-down clean

demo: $(READY)
	@$(BIN)/slurm-score demo

test: test-fast live

test-fast: lint
	$(BIN)/pytest -n 2 -m "not live" tests

lint: $(READY)
	@$(BIN)/python -m tests.tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY)
	@$(BIN)/python -m tests.docs

live: $(READY) engine
	@$(BIN)/python -m tests.live images
	$(BIN)/pytest -m live -n 3 --dist loadscope tests/live

bench-read: $(READY) engine
	@$(BIN)/python -m tests.bench.read $(RELEASE) $(JOBS)

bench-hook: $(READY) engine
	@$(BIN)/python -m tests.bench.hook $(RELEASE)

bench-cycle: $(READY) engine
	@$(BIN)/python -m tests.bench.cycle $(RELEASE) $(JOBS)

bench-score: $(READY)
	@$(BIN)/python -m tests.bench.score

bench-cli: $(READY)
	@$(BIN)/python -m tests.bench.cli

bench-fit: $(READY)
	@$(BIN)/python -m tests.bench.fit

bench-sim: $(READY)
	@$(BIN)/python -m tests.bench.sim

bench-research: $(READY)
	@$(BIN)/python -m tests.bench.research

verify-sim: $(READY)
	@$(BIN)/python -m tests.bench.verify_sim

bench-predict: $(READY)
	@$(BIN)/python -m tests.bench.predict

bench-predict-sim: $(READY)
	@$(BIN)/python -m tests.bench.predict_sim $(LOGS)

verify-predict: $(READY)
	@$(BIN)/python -m tests.bench.predict verify

fuzz: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[fuzz]'
	@$(BIN)/python -m tests.bench.fuzz $(SECONDS)

engine: $(READY)
	@$(BIN)/python -m tests.live engine

cluster: $(READY) engine
	@$(BIN)/python -m tests.live up

cluster-down: $(READY)
	@$(BIN)/python -m tests.live down

clean:
	rm -rf $(VENV) .cache dist build

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@
