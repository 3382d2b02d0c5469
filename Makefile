# Each target sets up what it needs in .venv. Needed on the machine: Python 3.11+ and Java 17+; with Go also the S3 tests run.
BIN := .venv/bin
INSTALLED := .venv/.installed
S3_SERVER := .venv/tools/versitygw
S3_SERVER_MODULE := github.com/versity/versitygw/cmd/versitygw@v1.8.0

.PHONY: help setup java demo test check torture lint bench clean

help:
	@echo "make demo    a pipeline on PySpark: write, audit, publish two tables; everything stays in ./lake"
	@echo "make test    lint, types, layers and all tests"
	@echo "make check   the quick part of it, under a minute"
	@echo "make torture many writers in every kind of trouble, for as long as EXAMPLES=1000 says"
	@echo "make bench   bergline next to its peers"

setup: $(INSTALLED)

$(INSTALLED): requirements-dev.lock pyproject.toml
	@python=$$(tools/machine.sh python) && \
	echo "setting up .venv ..." >&2 && \
	"$$python" -m venv --clear .venv && \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-dev.lock && \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . && \
	touch $@

$(S3_SERVER): | $(INSTALLED)
	@if ! command -v go > /dev/null; then echo "no Go on this machine: the S3 tests will be skipped" >&2; exit 0; fi; \
	echo "building the S3 server for tests ..." >&2; \
	GOBIN=$(CURDIR)/$(dir $@) CGO_ENABLED=0 go install -trimpath -ldflags=-s $(S3_SERVER_MODULE) > .venv/go.txt 2>&1 || \
	echo "the S3 server could not be built, the S3 tests will be skipped: .venv/go.txt says why" >&2

java:
	@tools/machine.sh java

demo: java $(INSTALLED)
	@$(BIN)/python demo/pipeline.py

test: java $(INSTALLED) $(S3_SERVER) lint
	@$(BIN)/python -m pytest

check: $(INSTALLED) lint
	@$(BIN)/python -m pytest tests/unit tests/sql -q -m "not server" -n 2

torture: java $(INSTALLED) $(S3_SERVER)
	@BERGLINE_EXAMPLES=$(or $(EXAMPLES),1000) $(BIN)/python -m pytest tests/stateful -q

lint: $(INSTALLED)
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo > .venv/lint-imports.txt || { cat .venv/lint-imports.txt; exit 1; }

bench: java $(INSTALLED)
	@for file in bench/bench_*.py; do $(BIN)/python $$file || exit 1; done

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis lake
