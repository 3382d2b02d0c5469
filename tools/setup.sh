#!/usr/bin/env bash
# Sets up .venv: with `demo` what make demo needs, with `dev` everything. What is installed and current stays.
# A mark says what is there: .venv/.demo-installed and .venv/.installed.
set -eu
cd "$(dirname "$0")/.."
demo=.venv/.demo-installed dev=.venv/.installed

current() { # a mark that is as new as the files that it stands for
  local mark="$1" file
  shift
  [ -e "$mark" ] || return 1
  for file in "$@"; do if [ "$file" -nt "$mark" ]; then return 1; fi; done
}

fresh() {
  local python version
  python=$(tools/machine.sh python)
  echo "setting up .venv ..." >&2
  "$python" -m venv --clear .venv
  version=$(sed -n 's/^uv==//p' requirements-dev.lock)
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps "uv==$version" > .venv/uv.txt 2>&1 ||
    echo "uv could not be had, pip installs the rest, which takes minutes: .venv/uv.txt says why" >&2
  .venv/bin/python tools/install.py --no-deps -r requirements-demo.lock
  .venv/bin/python tools/install.py --no-deps --no-build-isolation -e .
  touch $demo
}

if [ -L .venv ]; then echo "bergline: .venv is a link, and others may use it: run make setup where it leads" >&2; exit 1; fi
case "${1:-}" in
  demo)
    if current $dev requirements-dev.lock requirements-demo.lock pyproject.toml; then touch $demo; else fresh; fi
    ;;
  dev)
    if [ -e $dev ] || ! current $demo requirements-demo.lock pyproject.toml; then fresh; fi
    .venv/bin/python tools/install.py --no-deps -r requirements-dev.lock
    touch $dev
    ;;
  *) echo "usage: setup.sh demo|dev" >&2; exit 2 ;;
esac
