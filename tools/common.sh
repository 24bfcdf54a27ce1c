# Shared by ./run, ./test and the scripts of tools/: messages, the build, the Python environment.
# Sourced by bash with `set -euo pipefail`; sets `root` to the repository.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

# Where ccache is used, clones in other folders share its results.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1

say() { printf '%s\n' "$*" >&2; }
die() {
  say "error: $*"
  exit 1
}

# CPUs that this process may use (nproc knows its affinity).
num_jobs() { nproc 2>/dev/null || echo 2; }

# quietly LOG COMMAND...: runs the command with its output in LOG, which is shown only if it fails.
quietly() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  if ! "$@" >"$log" 2>&1 </dev/null; then
    tail -n 60 "$log" >&2
    say "failed: $* (the whole output is in $log)"
    return 1
  fi
}

# configure PRESET FOLDER [CMAKE OPTIONS]: quick when nothing changed. A build folder that was moved or copied
# here together with its sources is set up anew.
configure() {
  local preset=$1 folder=$2
  shift 2
  local fresh=()
  if [ -f "$folder/CMakeCache.txt" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"; then
    say "$folder was set up for another folder of sources; setting it up anew"
    fresh=(--fresh)
  fi
  if [ ! -f "$folder/CMakeCache.txt" ] && [ -z "${CMAKE_CXX_COMPILER_LAUNCHER:-}" ] && command -v ccache >/dev/null; then
    set -- "$@" -DCMAKE_CXX_COMPILER_LAUNCHER=ccache
  fi
  (cd "$root" && quietly "$folder/logs/configure.log" cmake --preset "$preset" "${fresh[@]}" "$@")
}

# build FOLDER [TARGETS]: silent when there is nothing to do; on a terminal ninja's own progress is shown.
build() {
  local folder=$1 targets=()
  shift
  if [ $# -gt 0 ]; then
    targets=(--target "$@")
  fi
  if [ "$(cmake --build "$folder" "${targets[@]}" -- -n 2>/dev/null </dev/null | tail -n 1)" = "ninja: no work to do." ]; then
    return 0
  fi
  say "building with $(num_jobs) jobs (minutes the first time)"
  if [ -t 2 ]; then
    cmake --build "$folder" --parallel "$(num_jobs)" "${targets[@]}" >&2 </dev/null || die "the build failed"
  else
    quietly "$folder/logs/build.log" cmake --build "$folder" --parallel "$(num_jobs)" "${targets[@]}" || die "the build failed"
  fi
}

# run_ctest FOLDER [CTEST OPTIONS]: all tests in parallel; prints failures in full and passes only as a sum.
run_ctest() {
  local folder=$1 status=0
  shift
  (cd "$folder" && ctest --parallel "$(num_jobs)" --output-on-failure --no-tests=error \
    --output-junit "$folder/ctest.xml" "$@" </dev/null) >"$folder/logs/ctest.log" 2>&1 || status=$?
  grep -Ev '^ *[0-9]+/[0-9]+ Test +#[0-9]+: .* Passed |^ +Start +[0-9]+: ' "$folder/logs/ctest.log" || true
  return $status
}

# run_e2e BINARY [PYTEST OPTIONS]
run_e2e() {
  local binary=$1
  shift
  prepare_python
  prepare_agents
  (cd "$root" && HADAL_TEST_BINARY=$binary .venv/bin/python -m pytest -q -p no:cacheprovider "$@" tests/e2e </dev/null)
}

# The command-line agents of tests/e2e/package.json in .agents (about 300 MB are fetched, once). What cannot be
# installed is left out, and the tests that need it say so and are skipped; HADAL_TEST_AGENTS=none wants none.
prepare_agents() {
  local pins=$root/tests/e2e/package-lock.json folder=$root/.agents
  if [ "${HADAL_TEST_AGENTS:-}" = none ] || cmp -s "$pins" "$folder/installed-package-lock.json"; then
    return
  fi
  if ! command -v npm >/dev/null; then
    say "no npm: the end-to-end tests with command-line agents are skipped"
    return
  fi
  say "installing the command-line agents into .agents"
  rm -rf "$folder"
  mkdir -p "$folder"
  cp "$root/tests/e2e/package.json" "$pins" "$folder"
  if (cd "$folder" && quietly "$root/build/logs/npm.log" npm ci --ignore-scripts --no-audit --no-fund); then
    cp "$pins" "$folder/installed-package-lock.json"
  else
    say "the command-line agents cannot be installed; the end-to-end tests with them are skipped"
  fi
}

# The first Python that can make virtual environments and is new enough for the test clients; empty if none.
find_python() {
  local candidate
  for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
      echo "$candidate"
      return
    fi
  done
}

# The pinned packages of the end-to-end tests in .venv; nothing is fetched while the pins stay the same.
prepare_python() {
  local pins=$root/tests/e2e/requirements.txt stamp=$root/.venv/installed-requirements.txt
  if [ -x "$root/.venv/bin/python" ] && cmp -s "$pins" "$stamp"; then
    return
  fi
  local python
  python=$(find_python)
  [ -n "$python" ] || die "no Python 3.11 or later with the venv module"
  say "installing the test clients into .venv"
  rm -rf "$root/.venv"
  quietly "$root/build/logs/venv.log" "$python" -m venv "$root/.venv" || die "cannot make .venv"
  quietly "$root/build/logs/pip.log" "$root/.venv/bin/python" -m pip install --disable-pip-version-check \
    --no-input --retries 5 -r "$pins" || die "cannot install the packages of tests/e2e/requirements.txt"
  cp "$pins" "$stamp"
}
