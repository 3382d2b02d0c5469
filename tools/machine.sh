#!/usr/bin/env bash
# Finds what the machine must bring. Usage: machine.sh python | machine.sh java
# python: prints a Python 3.11+ interpreter; java: checks for Java 17+. On failure one line says what is missing.
set -u
fail() { echo "bergline: $1" >&2; exit 1; }

find_python() {
  local candidate version found=""
  for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 python; do
    command -v "$candidate" >/dev/null 2>&1 || continue
    version=$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
      command -v "$candidate"
      return
    fi
    found="${found:-$version}"
  done
  fail "needs Python 3.11 or newer, found ${found:-none}; install it or set PYTHON=/path/to/python3"
}

check_java() {
  local java version
  java="${JAVA_HOME:+$JAVA_HOME/bin/}java"
  command -v "$java" >/dev/null 2>&1 || fail "needs Java 17 or newer, found none; install it or set JAVA_HOME"
  version=$("$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1)
  [ "${version:-0}" -ge 17 ] || fail "needs Java 17 or newer, found ${version:-an unknown version}; set JAVA_HOME"
}

case "${1:-}" in
  python) find_python ;;
  java) check_java ;;
  *) fail "usage: machine.sh python|java" ;;
esac
