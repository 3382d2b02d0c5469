#!/usr/bin/env bash
# Finds what the machine must bring. Usage: machine.sh python | machine.sh java | machine.sh java-home VERSION |
# machine.sh files MEBIBYTES
# python: prints a Python 3.11+ interpreter; java: checks for Java 17+; java-home: prints the home of a Java of that version or
# newer, which may be another one than the machine's usual; files: makes a directory for files that last as long as a run of
# tests and prints it, in memory where there is so much room. On failure one line says what is missing.
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

java_version() { "$1" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1; }

check_java() {
  local java version
  java="${JAVA_HOME:+$JAVA_HOME/bin/}java"
  command -v "$java" >/dev/null 2>&1 || fail "needs Java 17 or newer, found none; install it or set JAVA_HOME"
  version=$(java_version "$java")
  [ "${version:-0}" -ge 17 ] || fail "needs Java 17 or newer, found ${version:-an unknown version}; set JAVA_HOME"
}

find_java_home() {
  local wanted="$1" usual home version
  usual=$(readlink -f "$(command -v java)" 2>/dev/null)
  for home in ${JAVA_HOME:+"$JAVA_HOME"} "${usual%/bin/java}" "${usual%/*/bin/java}"/*; do
    [ -x "$home/bin/java" ] || continue
    version=$(java_version "$home/bin/java")
    if [ "${version:-0}" -ge "$wanted" ]; then
      echo "$home"
      return
    fi
  done
  fail "needs Java $wanted or newer, found none; install it beside the other or set JAVA_HOME"
}

# a disk is waited for several times in every commit. Tests run programs that they write, which memory may be mounted without,
# and the S3 server keeps attributes with files, which memory has from Linux 6.6 on
make_files() {
  local made free
  free=$(df --output=avail -m /dev/shm 2>/dev/null | tail -n 1)
  if [ "${free:-0}" -ge "$1" ] && made=$(mktemp -d -p /dev/shm 2>/dev/null); then
    printf '#!/bin/sh\n' > "$made/program" && chmod +x "$made/program"
    if "$made/program" 2>/dev/null && .venv/bin/python -c "import os; os.setxattr('$made/program', 'user.a', b'')" 2>/dev/null
    then
      rm "$made/program"
      echo "$made"
      return
    fi
    rm -r "$made"
  fi
  mktemp -d
}

case "${1:-}" in
  python) find_python ;;
  java) check_java ;;
  java-home) find_java_home "${2:?}" ;;
  files) make_files "${2:?}" ;;
  *) fail "usage: machine.sh python|java|java-home VERSION|files MEBIBYTES" ;;
esac
