#!/bin/bash
# entrypoint.sh ctl|backup|node: brings up one container of the test cluster. The configuration was put into /etc/slurm,
# the users and the accounts into /etc/slurm-score-test, before the container started. A second start is harmless.
set -eu

share=/opt/slurm-score/share/slurm-score
daemons=${SLURM_SCORE_DAEMONS-service,reprioritizer}

die() { echo "entrypoint: $*" >&2; exit 1; }

# start NAME: starts a daemon and returns when it answers
start() {
  local status
  daemon.sh start "$1"
  for _ in $(seq 600); do
    status=0
    daemon.sh check "$1" || status=$?
    case $status in
      0) return ;;
      3) die "$1 ended at once" ;;
    esac
    sleep 0.1
  done
  die "$1 does not answer after 60 s; its log is under /var/log"
}

# provide FILE...: puts the product's files beside slurm.conf, except where the test brought its own
provide() {
  for file; do
    [ ! -f "$file" ] || [ -e "/etc/slurm/${file##*/}" ] || install -m 644 "$file" /etc/slurm/
  done
}

need() {
  [ -e "/etc/slurm/$1" ] || die "$1 is neither given to the cluster nor in the wheel (looked in $share)"
}

prepare() {
  rm -rf /run/slurm-score-test  # process ids of an earlier start
  install -d /run/slurm-score-test /var/log/slurm-score-test
  install -d -o munge -g munge /run/munge
  install -d -o mysql -g mysql /run/mysqld
  install -d -o slurm -g slurm /run/slurm /run/slurm-score /var/log/slurm /var/lib/slurm/slurmctld
  install -d /var/lib/slurm/slurmd /var/log/slurm-score
  while read -r uid name; do
    id "$name" >/dev/null 2>&1 || useradd --uid "$uid" --create-home --shell /bin/bash "$name"
  done </etc/slurm-score-test/users
  install -d -o scoreop -g slurm -m 2750 /var/lib/slurm-score
  chown munge:munge /etc/munge/munge.key
  chown slurm:slurm /etc/slurm/slurmdbd.conf
  chmod 600 /etc/slurm/slurmdbd.conf
}

# What slurmctld loads has to be there before it starts: a missing script is fatal to it.
product_files() {
  if grep -qi '^JobSubmitPlugins=.*lua' /etc/slurm/slurm.conf; then
    provide "$share"/job_submit/*.lua
    need job_submit.lua
  fi
  if [ -n "$daemons" ]; then
    provide "$share/etc/slurm-score.yaml"
    need slurm-score.yaml
  fi
}

accounts() {
  local known log=/var/log/slurm-score-test/accounting.log
  # What exists already makes the exit code 1, so the outcome is looked at instead.
  sacctmgr --immediate </etc/slurm-score-test/accounting >"$log" 2>&1 || true
  known=$(sacctmgr --noheader --parsable2 list user format=user)
  while read -r _ name; do
    grep -qx "$name" <<<"$known" || die "sacctmgr does not know $name: see $log"
  done </etc/slurm-score-test/users
}

controller() {
  product_files
  start mariadb
  mariadb --execute='create database if not exists slurm_acct_db;
    create user if not exists slurm@localhost identified via unix_socket;
    grant all on slurm_acct_db.* to slurm@localhost'
  start slurmdbd
  accounts
  start slurmctld
  for name in ${daemons//,/ }; do start "$name"; done
}

# A second controller, which shares StateSaveLocation with the first and stands by. One that came first would not.
backup() {
  product_files
  until scontrol ping 2>/dev/null | grep -q '(primary) .* UP'; do sleep 0.1; done
  for name in slurmctld ${daemons//,/ }; do start "$name"; done
}

node() {
  for index in $(seq 0 $((GPUS - 1))); do
    [ -e "/dev/nvidia$index" ] || mknod -m 666 "/dev/nvidia$index" c 195 "$index"
  done
  start slurmd
}

prepare
start munged
case ${1:-} in
  ctl) controller ;;
  backup) backup ;;
  node) node ;;
  *) die "usage: entrypoint.sh ctl|backup|node" ;;
esac
echo "entrypoint: ready"
exec sleep infinity  # the daemons are children of tini; a test may stop each of them without ending the container
