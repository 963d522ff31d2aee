#!/bin/bash
# daemon.sh start|stop|check NAME [SIGNAL]: runs one daemon of the container, so that a test can kill it and start
# it again. `start` returns at once; `check` exits 0 when the daemon answers, 1 when it does not yet, 3 when it is not
# running; `stop` returns when it is gone. With CLOCK the daemon's clock is off by what stands in that file, such as
# "+1h"; a change of the file is a step of the clock.
set -eu

usage="usage: daemon.sh start|stop|check munged|mariadb|slurmdbd|slurmctld|slurmd|service|reprioritizer [SIGNAL]"
action=${1:?$usage}
name=${2:?$usage}
signal=${3:-TERM}
pid_file=/run/slurm-score-test/$name.pid
export SLURM_SCORE_POLICY=${SLURM_SCORE_POLICY:-/etc/slurm/slurm-score.yaml}
export SLURM_SCORE_SNAPSHOT=${SLURM_SCORE_SNAPSHOT:-/var/lib/slurm-score/snapshot.jsonl}
export SLURM_SCORE_AUDIT=${SLURM_SCORE_AUDIT:-/var/lib/slurm-score/audit.sqlite}
export SLURM_SCORE_SOCKET=${SLURM_SCORE_SOCKET:-/run/slurm-score/slurm-score.sock}
export SLURM_SCORE_HOOK_SOCKET=${SLURM_SCORE_HOOK_SOCKET:-/run/slurm-score/hook.sock}

case $name in
  munged)        user=munge;   log=/var/log/slurm-score-test/munged.log;      argv=(munged --foreground) ;;
  mariadb)       user=mysql;   log=/var/log/slurm-score-test/mariadb.log;     argv=(mariadbd) ;;
  slurmdbd)      user=slurm;   log=/var/log/slurm/slurmdbd.out;               argv=(slurmdbd -D) ;;
  slurmctld)     user=slurm;   log=/var/log/slurm/slurmctld.out;              argv=(slurmctld -D) ;;
  slurmd)        user=root;    log=/var/log/slurm/slurmd.out;                 argv=(slurmd -D) ;;
  service)       user=slurm;   log=/var/log/slurm-score/service.log;          argv=(slurm-score serve) ;;
  reprioritizer) user=scoreop; log=/var/log/slurm-score/reprioritizer.log
                 argv=(slurm-score reprioritize --every "${SLURM_SCORE_EVERY:-60s}") ;;
  *) echo "$usage" >&2; exit 2 ;;
esac

running() { [ -s "$pid_file" ] && kill -0 "$(cat "$pid_file")" 2>/dev/null; }

connects() {
  python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' "$1" 2>/dev/null
}

listens() { (: </dev/tcp/localhost/"$1") 2>/dev/null; }

answers() {
  case $name in
    munged) munge --no-input >/dev/null 2>&1 ;;
    mariadb) mariadb --execute='select 1' >/dev/null 2>&1 ;;
    # sacctmgr of 22.05 sits out five seconds when nobody listens yet.
    slurmdbd) listens 6819 && sacctmgr --noheader list cluster >/dev/null 2>&1 ;;
    slurmctld) scontrol ping 2>/dev/null | grep -q ' UP' ;;
    service) connects "$SLURM_SCORE_HOOK_SOCKET" && connects "$SLURM_SCORE_SOCKET" ;;
    slurmd | reprioritizer) true ;;
  esac
}

start() {
  if running; then echo "$name is already running" >&2; exit 1; fi
  # Slurm closes every possible descriptor when it forks, and some engines allow a thousand million of them.
  ulimit -n 65536 2>/dev/null || true
  if [ -n "${CLOCK:-}" ]; then
    # Clocks that only measure durations stay as they are, as they do when a host's clock is set.
    argv=(env LD_PRELOAD="/usr/\$LIB/faketime/libfaketimeMT.so.1" FAKETIME_TIMESTAMP_FILE="$CLOCK" FAKETIME_NO_CACHE=1
          FAKETIME_DONT_FAKE_MONOTONIC=1 "${argv[@]}")
  fi
  # setpriv replaces itself by the daemon, so $! is the daemon; its parent, this script, ends, so that tini reaps it.
  HOME=$(getent passwd "$user" | cut -d: -f6) setsid setpriv --reuid "$user" --regid "$user" --init-groups \
    "${argv[@]}" </dev/null >>"$log" 2>&1 &
  echo $! >"$pid_file"
}

stop() {
  if ! running; then echo "$name is not running" >&2; exit 1; fi
  kill -s "${signal#SIG}" "$(cat "$pid_file")"
  for _ in $(seq 300); do
    if ! running; then rm -f "$pid_file"; return; fi
    sleep 0.1
  done
  echo "$name is still there 30 s after SIG${signal#SIG}" >&2
  exit 1
}

case $action in
  start) start ;;
  stop) stop ;;
  check)
    running || { echo "$name is not running; the end of $log:" >&2; tail -n 5 "$log" >&2; exit 3; }
    answers || exit 1
    ;;
  *) echo "$usage" >&2; exit 2 ;;
esac
