#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# deps.sh [--for build|test|check|all]...: installs what is missing on Debian 12; without --for, what building and
# testing need.  Silent and without network when nothing is missing.
set -euo pipefail

# bpftool and tcpdump are for people who look into the lab; everything else is used by a rule or a test.
declare -A packages=(
	[build]="gcc make clang llvm libbpf-dev libelf-dev zlib1g-dev libsystemd-dev libfyaml-dev libjansson-dev
		libsmartcols-dev libmnl-dev libxxhash-dev libgnutls28-dev libc6-dev linux-libc-dev pkgconf python3-docutils"
	[test]="libcmocka-dev python3 python3-pytest python3-hypothesis python3-scapy libclang-rt-14-dev nginx curl iperf3
		ca-certificates dnsmasq-base bind9-dnsutils iproute2 iputils-ping ethtool bpftool tcpdump procps openssl strace
		util-linux qemu-system-x86 busybox-static tshark bird2"
	[check]="git clang-format clang-tidy cppcheck sparse shellcheck codespell"
)

usage() {
	echo "usage: deps.sh [--for build|test|check|all]..." >&2
	exit 2
}

wanted=()
while [ $# -gt 0 ]; do
	if [ "$1" != --for ] || [ $# -lt 2 ]; then usage; fi
	case "$2" in
	build | test | check) wanted+=("$2") ;;
	all) wanted+=(build test check) ;;
	*) usage ;;
	esac
	shift 2
done
[ ${#wanted[@]} -gt 0 ] || wanted=(build test)

names=()
for group in "${wanted[@]}"; do
	read -r -d '' -a group_names <<<"${packages[$group]}" || true
	names+=("${group_names[@]}")
done

if ! command -v dpkg-query >/dev/null; then
	printf 'deps.sh: this is no Debian; make sure that the equivalents of these are installed: %s\n' "${names[*]}" >&2
	exit 0
fi

installed=$(dpkg-query -W -f '${binary:Package} ${db:Status-Status}\n' | sed -n 's/^\([^: ]*\)[^ ]* installed$/\1/p')
missing=()
for name in "${names[@]}"; do
	grep -qxF -- "$name" <<<"$installed" || missing+=("$name")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ]; then
	echo "deps.sh: not root; run: sudo apt-get install --no-install-recommends ${missing[*]}" >&2
	exit 1
fi

# nginx and BIRD are only run by tests, inside their namespaces: the packages must not start their services on this
# host, now or at the next boot.  Where systemd runs, a run-time mask stops them; elsewhere RUNLEVEL=1 does, because
# invoke-rc.d asks runlevel(8), which believes that variable, and nothing starts in runlevel 1.  Both vanish by
# themselves; a policy-rc.d would have to be written over the administrator's.
services=()
for pair in nginx:nginx bird2:bird; do
	case " ${missing[*]} " in *" ${pair%:*} "*) services+=("${pair#*:}") ;; esac
done
with_systemd=false
if [ -d /run/systemd/system ]; then with_systemd=true; fi

finish() {
	if [ ${#services[@]} -gt 0 ] && $with_systemd; then
		systemctl --quiet --runtime unmask "${services[@]/%/.service}"
	fi
	rm -f "${log:-}"
}
trap finish EXIT
if [ ${#services[@]} -gt 0 ] && $with_systemd; then systemctl --quiet --runtime mask "${services[@]/%/.service}"; fi

install() {
	DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get -qq -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
		install --no-install-recommends "${missing[@]}" </dev/null >"$log" 2>&1
}

echo "deps.sh: installing ${missing[*]}"
log=$(mktemp)
# The lists on disk may be absent or name versions that the mirror has no longer: fetch them only then.
if ! install; then
	apt-get -qq -o DPkg::Lock::Timeout=300 update
	if ! install; then
		cat "$log" >&2
		echo "deps.sh: apt-get could not install: ${missing[*]}" >&2
		exit 1
	fi
fi
for service in "${services[@]}"; do update-rc.d "$service" disable >/dev/null; done
