# The steps of .ci/run and .ci/release, which source this from the root of the checkout. A script that sets `budget_seconds` says how long all steps
# may take together. Arguments name the steps to run; without any, all run. A failed step does not end the script: `finish` prints
# a summary, the first failure and the count of tests, and exits with 0 only when every step succeeded.

# Nothing may be left out silently: with CI set, a missing Redis or browser fails the tests.
export CI=true
export DEBIAN_FRONTEND=noninteractive

asked=("$@")
known=()
reports=$(mktemp -d)
mkdir "$reports/more" # for reports of steps that run several suites of their own
# Every process that a step starts has this in its environment as MUSTER_CI_RUN, and so is found however it detached itself. A process that
# `begin` started has it as MUSTER_CI_BEGUN, since the end of another step must not end it.
mark="$$-$RANDOM-$RANDOM"
running=
begun=()

processes_left() {
  grep -lsxzF "$1=$mark" /proc/[0-9]*/environ | cut -d/ -f3 || true
}

end_processes() {
  local signal pids
  for signal in TERM KILL; do
    pids=$(processes_left "$1")
    [ -n "$pids" ] || return 0
    # shellcheck disable=SC2086
    kill -s "$signal" $pids 2>/dev/null || true
    for _ in {1..50}; do
      [ -n "$(processes_left "$1")" ] || return 0
      sleep 0.1
    done
  done
}

clean_up() {
  end_processes MUSTER_CI_RUN
  end_processes MUSTER_CI_BEGUN
  ((${#begun[@]} == 0)) || wait "${begun[@]}" || true
  rm -rf "$reports"
}
trap clean_up EXIT
trap '[ -z "$running" ] || kill -s TERM "$running" 2>/dev/null || true; exit 130' INT TERM

# Prints the output from the first test that failed, or its end if vitest names none.
what_failed() {
  local plain
  plain=$(sed 's/\x1b\[[0-9;]*m//g' "$1" 2>/dev/null || true)
  grep -m 1 -A 39 '^ *FAIL ' <<<"$plain" || tail -n 40 <<<"$plain"
}

is_asked() {
  ((${#asked[@]} == 0)) || [[ " ${asked[*]} " == *" $1 "* ]]
}

# step <name> <limit in seconds> <command...>: runs the command if the step is asked for, and writes its outcome into the folder of reports.
# The limit ends a command that hangs. It is several times what a slow machine needs, since no step may fail for being slow.
step() {
  local name=$1 limit=$2 begin=$SECONDS code=0 left=$((budget_seconds - SECONDS)) leftovers out copy output="$reports/output"
  shift 2
  known+=("$name")
  is_asked "$name" || return 0
  printf '\n=== %s: %s\n' "$name" "$*"
  rm -f "$output"
  if ((left <= 0)); then
    code=124
  else
    exec {out}> >(tee "$output")
    copy=$!
    env "MUSTER_CI_RUN=$mark" timeout --kill-after=20 "$((limit < left ? limit : left))" "$@" >&"$out" 2>&1 &
    running=$!
    exec {out}>&-
    wait "$running" || code=$?
    running=
  fi
  leftovers=$(processes_left MUSTER_CI_RUN)
  if [ -n "$leftovers" ]; then
    printf 'ending what "%s" left running:\n' "$name"
    for pid in $leftovers; do printf '  %s %s\n' "$pid" "$(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null || true)"; done
    end_processes MUSTER_CI_RUN
  fi
  # The copy ends with the last process that writes to it, and a daemon of the machine that the step started may write for ever.
  for _ in {1..50}; do
    [ -n "${copy:-}" ] && kill -0 "$copy" 2>/dev/null || break
    sleep 0.1
  done
  case $code in
    0) echo "ok      $name ($((SECONDS - begin)) s)" ;;
    124 | 137) echo "FAILED  $name (out of time after $((SECONDS - begin)) s)" ;;
    *) echo "FAILED  $name (exit code $code, $((SECONDS - begin)) s)" ;;
  esac >>"$reports/summary"
  if ((code != 0)) && mkdir "$reports/failed" 2>/dev/null; then
    printf '\n=== First failure: %s\n%s\n\n' "$name" "$(what_failed "$output")" >"$reports/failed/first"
  fi
  return "$code"
}

# begin <name> <command...>: starts the command of a step that waits for a download. The steps that follow run concurrently, and its output is kept
# until `await <name>`.
begin() {
  local name=$1
  shift
  is_asked "$name" || return 0
  (
    code=0
    env "MUSTER_CI_BEGUN=$mark" "$@" >"$reports/$name.output" 2>&1 || code=$?
    echo "$code" >"$reports/$name.code"
  ) &
  begun+=("$!")
}

# ended <path of a report without its ending>: waits for what `begin` started, prints its output and exits as it did.
ended() {
  until [ -s "$1.code" ]; do sleep 0.2; done
  cat "$1.output"
  exit "$(<"$1.code")"
}

# await <name> <limit in seconds>: the step whose command `begin` started.
await() {
  export -f ended
  step "$1" "$2" bash -euo pipefail -c 'ended "$1"' bash "$reports/$1" || true
}

# suite <name> <limit in seconds> <script of package.json> [argument of vitest]...: a step whose tests are counted.
suite() {
  local name=$1 limit=$2 script=$3
  shift 3
  if is_asked "$name"; then echo "$reports/$name.json" >>"$reports/suites"; fi
  step "$name" "$limit" npm run "$script" -- "$@" --reporter=default --reporter=json --outputFile.json="$reports/$name.json" || true
}

# suites <name> <limit in seconds> <script of package.json> [argument]...: a step that runs suites of its own, each of which writes a report.
suites() {
  local name=$1 limit=$2 script=$3
  shift 3
  TEST_REPORTS="$reports/more" step "$name" "$limit" npm run "$script" -- "$@" || true
}

is_installed() {
  case $1 in
    redis-server | chromium | pgbouncer) command -v "$1" >/dev/null ;;
    systemd) command -v systemd-analyze >/dev/null ;;
    # With JIT, which users' servers have and the embedded one has not.
    postgresql) compgen -G '/usr/lib/postgresql/*/lib/llvmjit.so' >/dev/null ;;
    python3-venv) python3 -c 'import ensurepip' 2>/dev/null ;;
  esac
}

# install_packages <package of Debian>...: installs those that are missing, which needs root.
install_packages() {
  local package missing=()
  for package in "$@"; do is_installed "$package" || missing+=("$package"); done
  if ((${#missing[@]} == 0)); then
    echo "$* are there"
    return
  fi
  if ((EUID != 0)); then
    echo "not root: install ${missing[*]} and run again" >&2
    return 1
  fi
  apt-get update
  apt-get install -y --no-install-recommends "${missing[@]}"
  for package in "${missing[@]}"; do
    # A package may start a server on its usual port. No test may reach it by accident: tests start their own, on ports of their own.
    case $package in redis-server | pgbouncer | postgresql) service "$package" stop >/dev/null 2>&1 || true ;; esac
    if ! is_installed "$package"; then
      echo "$package was installed, and what the tests need of it is still missing" >&2
      return 1
    fi
  done
}

# install <package of Debian>...: the system's packages, and npm's at the same time. Without them no other step can run.
install() {
  local installed=yes
  export -f is_installed install_packages
  begin packages bash -euo pipefail -c 'install_packages "$@"' bash "$@"
  step install 900 npm ci || installed=no
  await packages 900
  [ "$installed" = yes ] || finish
  # `npm ci` has compiled the sources, and no step edits them: the test scripts of package.json run `true` instead of compiling them again.
  if is_asked install; then export TEST_BUILD=true; fi
}

# The checks that read the sources and run nothing.
check_sources() {
  local part
  for part in format lint types rooms house unused; do step "$part" 600 npm run "check:$part" || true; done
}

finish() {
  local name suites=()
  for name in "${asked[@]}"; do
    [[ " ${known[*]} " == *" $name "* ]] && continue
    echo "FAILED  $name (there is no such step; there are ${known[*]})" >>"$reports/summary"
    mkdir -p "$reports/failed"
  done
  printf '\n=== Summary\n'
  cat "$reports/summary"
  [ ! -e "$reports/suites" ] || mapfile -t suites <"$reports/suites"
  shopt -s nullglob
  suites+=("$reports"/more/*.json)
  FIRST_FAILURE=$(cat "$reports/failed/first" 2>/dev/null || true) node .ci/count-tests.mjs "${suites[@]}" || exit 1
  [ ! -e "$reports/failed" ] || exit 1
  # A script may want to know that every step was run, and succeeded.
  if ((${#asked[@]} == 0)) && declare -F all_succeeded >/dev/null; then all_succeeded; fi
  exit 0
}
