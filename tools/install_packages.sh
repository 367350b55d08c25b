#!/usr/bin/env bash
# install_packages.sh venv|test|browser: puts the system packages in place that the commands of the Makefile need.
# As root on Debian and its relatives it installs what is missing; anywhere else it says what that is. Never asks.
set -euo pipefail

wanted=()
need() { # need COMMAND-OR-FILE PACKAGE: the package is wanted when there is neither such a command nor such a file
  command -v "$1" >/dev/null 2>&1 || [ -e "$1" ] || wanted+=("$2")
}

case "${1:-}" in
  venv)
    "${PYTHON:-python3}" -c 'import ensurepip, venv' 2>/dev/null || wanted+=(python3-venv)
    ;;
  test)
    need mariadbd mariadb-server
    compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || need postgres postgresql
    need java openjdk-17-jdk-headless
    need javac openjdk-17-jdk-headless
    need mvn maven
    need thrift thrift-compiler
    need /usr/sbin/krb5kdc krb5-kdc
    need /usr/sbin/kadmin.local krb5-admin-server
    need kinit krb5-user
    need krb5-config libkrb5-dev
    need /usr/sbin/slapd slapd
    need /usr/sbin/pgbouncer pgbouncer
    need /usr/sbin/haproxy haproxy
    need /usr/sbin/pgpool pgpool2
    need /usr/sbin/rsyslogd rsyslog
    ;;
  browser)
    need chromium chromium
    ;;
  *)
    echo "usage: $0 venv|test|browser" >&2
    exit 2
    ;;
esac
[ "${#wanted[@]}" -gt 0 ] || exit 0
mapfile -t wanted < <(printf '%s\n' "${wanted[@]}" | sort -u)

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "not installed here: ${wanted[*]}" >&2
  if [ "$1" != venv ] && [ -z "${HMS_CACHE_REQUIRE_DATABASES:-}" ]; then
    echo "tests that need them are skipped" >&2
    exit 0
  fi
  exit 1
fi

# The tests start database servers of their own, on ports of their own: the packages' services stay down.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi
echo "installing ${wanted[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
quietly() {
  "$@" >"$log" 2>&1 </dev/null || {
    tail -n 40 "$log" >&2
    return 1
  }
}
quietly apt-get update
quietly apt-get install --yes --no-install-recommends "${wanted[@]}"
rm -f "$log"
