# Everything here works on a machine with Python 3.11+ and git alone.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test check lint fmt golden docs docs-check constraints bench bench-agent clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## make a virtual environment with the tool and what its tests need

$(READY): pyproject.toml constraints.txt hatch_build.py $(wildcard agent/traces/scan/*)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "label-agent needs Python 3.11 or newer; set PYTHON=python3.11"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r constraints.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .
	@touch $@

demo: $(READY) ## run the whole job on bundled input, without key or network
	@$(BIN)/label-agent demo --folder .demo --force

test: $(READY) ## run the tests
	@$(BIN)/python -m pytest -n auto -rs

lint: $(READY) ## ruff, mypy, layers, rule lint
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/label-agent rules lint

fmt: $(READY) ## format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

golden: $(READY) ## rewrite the golden files; review the diff
	@LABEL_AGENT_GOLDEN=write $(BIN)/python -m pytest tests -k golden -p no:xdist

docs: $(READY) ## write the generated parts of the docs
	@$(BIN)/python docs/generate.py

docs-check: $(READY) ## fail when a generated part of the docs is stale
	@$(BIN)/python docs/generate.py --check

constraints: ## pin every dependency again, with hashes (needs uv)
	@uv lock -q --upgrade && uv export -q --no-emit-project --all-groups --format requirements-txt --no-header -o constraints.txt > /dev/null

bench: $(READY) ## time reading and comparing against their floor, as ratios
	@$(BIN)/python benchmarks/run.py

bench-agent: $(READY) ## count what the proposers settle on the demo, offline and with a recorded model
	@$(BIN)/python benchmarks/agent.py

check: lint docs-check test ## everything CI runs

clean: ## remove the virtual environment, caches and the demo
	@rm -rf $(VENV) .demo .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
