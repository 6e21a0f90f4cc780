# One command each; `make help` lists them. Everything runs from .venv, which is made on first use.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip --quiet --disable-pip-version-check
BEGUN  := $(VENV)/.begun
STAMP  := $(VENV)/.installed

# Where the end-to-end tests run: `kind` (made by the harness) or `current` (the cluster that KUBECONFIG names).
CLUSTER ?= kind
# How many of them at once; a small cluster that is given may have room for one only.
PARALLEL ?= 3
# How many integration tests at once.
PROCESSES ?= 2
# `make demo KEEP=1` leaves the cluster up.
KEEP ?=
# `make bench ARGS="--scenario 1000x3"`: what `python -m bench --help` tells of.
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo supplies programs test check unit integration e2e compatibility bench lint types imports format image wheels cluster-up cluster-down crds lock clean

help: ## this list
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# What the local cluster is built with comes first and is small: the rest is installed while that builds.
$(BEGUN): requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Muster needs Python 3.11 or later; PYTHON=/path/to/python3.11 make … chooses one"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "Python's venv module is missing: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -c requirements-dev.txt rich hatchling
	@touch $@

$(STAMP): $(BEGUN) requirements-dev.txt pyproject.toml
	$(PIP) install --no-compile -r requirements-dev.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

demo: ## a local cluster, Muster in it, and a RayJob that runs as a gang
	@$(MAKE) --no-print-directory --jobs=2 $(STAMP) supplies
	$(BIN)/python -m tests.demo $(if $(KEEP),--keep)

supplies: $(BEGUN)
	@$(BIN)/python -m tests.cluster.node supplies

test: ## all tests
	@$(MAKE) --no-print-directory --jobs=2 check programs
	@$(MAKE) --no-print-directory integration
	@$(MAKE) --no-print-directory e2e

# Compiled while all is checked that needs none of it: most of that has one processor busy only.
programs: $(BEGUN)
	@$(BIN)/python -m tests.cluster.build_ahead

check: lint types imports unit ## all that needs no cluster

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports --no-cache

unit: $(STAMP)
	$(BIN)/pytest -n 2 -q --durations=8 -m "not control_plane and not node and not ray and not host"

integration: $(STAMP) ## tests on a real API server and a real Ray
	$(BIN)/pytest -n $(PROCESSES) --dist loadgroup -q --durations=8 -m "(control_plane or ray or host) and not node"

e2e: $(STAMP) ## end-to-end tests on kind, or with CLUSTER=current on the cluster that KUBECONFIG names
	$(BIN)/pytest -n $(PARALLEL) --maxschedchunk=1 -q --durations=0 --durations-min=5 -m node --cluster=$(CLUSTER) tests/e2e

compatibility: $(STAMP) ## KubeRay's own end-to-end tests of RayJob and RayCluster, on kind; no part of `test`
	$(BIN)/python -m tests.compatibility

bench: $(STAMP) ## schedulers side by side on a real API server; ARGS="--help" tells what can be chosen
	$(BIN)/python -m bench $(ARGS)

format: $(STAMP) ## rewrite the code as the linter wants it
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

crds: $(STAMP) ## write crds/ from the models
	$(BIN)/muster crds --output crds

wheels: $(STAMP) ## Muster's wheel and all it depends on, in build/wheels
	$(BIN)/python -m tests.cluster.node wheels

image: $(STAMP) ## Muster's image
	$(BIN)/python -m tests.cluster.node image

cluster-up: $(STAMP) ## start the local kind cluster
	$(BIN)/python -m tests.cluster up --level node

cluster-down: $(STAMP) ## stop it and remove all that it made
	$(BIN)/python -m tests.cluster down --level node

lock: $(STAMP) ## pin the dependencies anew, and the Go programs of the local cluster
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --quiet --upgrade --python-version 3.11 --no-annotate --no-header pyproject.toml -o requirements.txt
	$(BIN)/uv pip compile --quiet --upgrade --python-version 3.11 --no-annotate --no-header --extra dev -c requirements.txt pyproject.toml -o requirements-dev.txt
	sed -i '1i # What Muster runs with, pinned. Made by `make lock`; pyproject.toml has the ranges.' requirements.txt
	$(BIN)/python -m tests.cluster.lock_programs
	$(BIN)/python -m tests.cluster.lock_kuberay
	$(BIN)/python -m bench.lock_coscheduling
	sed -i '1i # What Muster is built and tested with, pinned. Made by `make lock`; pyproject.toml has the ranges.' requirements-dev.txt

clean: ## remove what the build made here (not the user cache of the local cluster)
	rm -rf build dist $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
