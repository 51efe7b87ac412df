# One verb a target; `make` alone lists them.
BIN := .venv/bin
READY := .venv/ready
SEED ?= 1
NODES ?= 100
SECONDS ?= 600

.PHONY: help
help:
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# A stamp, not the folder, is the target: a half-made .venv must not count as made.
$(READY): pyproject.toml
	python3 -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip  # --group needs pip 25.1
	$(BIN)/pip install --quiet --editable . --group dev
	@touch $@

.PHONY: demo test check fix sim soak bench package
demo: $(READY)  ## a real three-node cluster in namespaces: kill a node, watch the failover
	$(BIN)/wayout lab demo

test: $(READY)  ## the whole test suite; what cannot run here is skipped with a reason
	$(BIN)/pytest

check: $(READY)  ## what every change must pass: format, lint, types, contracts, fast tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q -n 2 -m "not netns and not interop and not slow"

fix: $(READY)  ## format and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

sim: $(READY)  ## one simulated cluster: make sim SEED=7 NODES=200
	$(BIN)/wayout simulate --seed $(SEED) --nodes $(NODES) --kill 2

soak: $(READY)  ## long runs: fuzzing of every decoder (SECONDS=600), laws with many examples, faults
	$(BIN)/pip install --quiet --group soak
	$(BIN)/python bench/fuzz.py --seconds $(SECONDS)
	HYPOTHESIS_PROFILE=soak $(BIN)/pytest -q -m "not netns and not interop" tests/property tests/simulation

bench: $(READY)  ## measure against peers and limits; FULL=1 with large clusters and long runs
	$(BIN)/python bench/run.py $(if $(FULL),--full)

package: $(READY)  ## build the wheel and the source distribution
	$(BIN)/pip install --quiet build
	$(BIN)/python -m build
