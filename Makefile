# Each target sets up what it needs in .venv. Needed on the machine: Python 3.11+ and Java 17+.
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: help setup java demo test check lint bench clean

help:
	@echo "make demo    write-audit-publish on PySpark; everything stays in ./lake"
	@echo "make test    lint, types, layers and all tests"
	@echo "make check   the quick part of it, under a minute"
	@echo "make bench   bergline next to its peers"

setup: $(INSTALLED)

$(INSTALLED): requirements-dev.lock pyproject.toml
	@python=$$(tools/machine.sh python) && \
	echo "setting up .venv ..." >&2 && \
	"$$python" -m venv --clear .venv && \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-dev.lock && \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . && \
	touch $@

java:
	@tools/machine.sh java

demo: java $(INSTALLED)
	@$(BIN)/python demo/write_audit_publish.py

test: java $(INSTALLED) lint
	@$(BIN)/python -m pytest

check: $(INSTALLED) lint
	@$(BIN)/python -m pytest tests/unit tests/property tests/sql -q

lint: $(INSTALLED)
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo > .venv/lint-imports.txt || { cat .venv/lint-imports.txt; exit 1; }

bench: java $(INSTALLED)
	@for file in bench/bench_*.py; do $(BIN)/python $$file || exit 1; done

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis lake
