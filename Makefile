# Two commands: `make run` and `make test`. Both need only Python >= 3.11, pip and make.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
ARGS   ?=
WORKERS ?= 4
SLOW_WORKERS ?= 2
PYTEST = $(BIN)/python -m pytest --durations=20 --durations-min=0.1
# A comma in an argument of `call`.
COMMA := ,
NONE_IS_FINE = $(if $(ARGS),|| [ $$? = 5 ])
# Tests start hundreds of processes; compiling the source anew in each would take most of their time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run test test-all check format bench image deps-ci clean
.DEFAULT_GOAL := help

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

run: $(VENV)/.run ## start Roost with its own store (more with ARGS="--port 9000")
	@exec $(BIN)/roost up $(ARGS)

test: $(VENV)/.dev ## the tests, without the slow ones and those of `make check` (ARGS="-k link" for a part)
	$(PYTEST) -m "not slow" --ignore=tests/architecture -n $(WORKERS) --dist loadfile $(ARGS)

# Slow tests have real deadlines and many processes each: two at a time. A file of tests/browser is one Roost and one
# browser, and its tests follow from each other: it stays whole. Mutants have a copy of everything each.
test-all: $(VENV)/.dev ## only what `make test` leaves out: slow tests, then the mutants in parallel
	$(PYTEST) -m slow tests/browser -n $(SLOW_WORKERS) --dist loadfile $(ARGS) $(NONE_IS_FINE)
	$(PYTEST) -m slow --ignore=tests/mutants --ignore=tests/browser -n $(SLOW_WORKERS) --dist worksteal $(ARGS) $(NONE_IS_FINE)
	$(PYTEST) -m slow tests/mutants -n $(WORKERS) --dist worksteal $(ARGS) $(NONE_IS_FINE)

check: $(VENV)/.dev ## formatting, lint, types (source and tests), architecture tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/architecture

format: $(VENV)/.dev ## put the code into its format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.bench ## the benchmarks beside their peers (ARGS=link for one of them)
	$(BIN)/python benchmarks/run.py $(ARGS)

image: ## the container image roost:local, labelled with the version
	docker build --build-arg VERSION=$$(sed -n 's/__version__ = "\(.*\)"/\1/p' src/roost/version.py) -t roost:local .

.env: | $(VENV)/.run # fresh secrets for compose.yaml; an existing file is kept
	@umask 077 && { $(BIN)/roost config --secrets && printf 'POSTGRES_PASSWORD=%s\n' "$$($(BIN)/python -c 'import secrets; print(secrets.token_hex(24))')"; } > $@.new && mv $@.new $@ || { rm -f $@.new; exit 1; }
	@echo "$@ has the secrets of compose.yaml"

deps-ci: ## Debian packages that some tests need (they skip, with the reason, where one is missing)
	@if ! command -v apt-get >/dev/null; then echo "no apt-get here: tests that need Debian packages will skip"; \
	else SUDO=; [ "$$(id -u)" = 0 ] || SUDO=sudo; \
	  $$SUDO apt-get update -qq && \
	  $$SUDO env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends redis-server chromium postgresql mariadb-server prometheus bind9-dnsutils nats-server haproxy; fi

clean: ## remove the virtual environment and every cache
	rm -rf $(VENV) build dist clients/typescript/dist clients/typescript/node_modules .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment: uv if it is there, else the standard venv, else virtualenv (Debian splits venv off Python).
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Roost needs Python >= 3.11; $(PYTHON) is $$($(PYTHON) -V 2>&1). Name another with PYTHON=python3.12" >&2; exit 1; }
	@if command -v uv >/dev/null 2>&1; then uv venv -q --clear --python $(PYTHON) $(VENV); \
	elif $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then $(PYTHON) -m venv --clear $(VENV); \
	else { $(PYTHON) -m pip install -q --user virtualenv || $(PYTHON) -m pip install -q --user --break-system-packages virtualenv; } && \
	  $(PYTHON) -m virtualenv -q $(VENV); fi

define install
	@echo "installing $(1) into $(VENV) …"
	@if command -v uv >/dev/null 2>&1; then uv pip install -q --python $(BIN)/python -e '$(1)'; \
	else $(BIN)/python -m pip install -q --disable-pip-version-check -e '$(1)'; fi
	@touch $@
endef

$(VENV)/.run: pyproject.toml $(BIN)/python
	$(call install,.)

$(VENV)/.dev: pyproject.toml $(BIN)/python
	$(call install,.[dev])
	@touch $(VENV)/.run

$(VENV)/.bench: pyproject.toml $(BIN)/python
	$(call install,.[bench$(COMMA)otel])
	@touch $(VENV)/.run
