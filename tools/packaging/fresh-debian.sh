#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Shows that the README's two commands work on a bare machine: for each, a minimal Debian with
# nothing but ca-certificates and git, a clean clone of HEAD in it, and the command alone.
#
#     sudo sh tools/packaging/fresh-debian.sh [demo|check]...
#
# It needs root, debootstrap, and the network to a mirror, which is the one that this machine's own
# apt uses.  Each command's whole output is kept in a file that is named at the end.
set -eu

suite=${SUITE:-bookworm}
work=$(mktemp -d /var/tmp/fresh-debian.XXXXXX)
repository=$(cd "$(dirname "$0")/../.." && pwd)

# A mount that could not be undone must not be emptied: the folder stays, and is named.
# shellcheck disable=SC2317 # the trap calls it
cleanup() {
	trap - EXIT INT TERM
	for root in "$work"/demo "$work"/check; do
		for folder in dev/shm dev/pts dev proc; do
			! mountpoint -q "$root/$folder" || umount "$root/$folder" || umount -l "$root/$folder"
		done
		if ! grep -q " $root/" /proc/mounts; then
			rm -rf --one-file-system "$root"
		else
			echo "still mounted, left as it is: $root" >&2
		fi
	done
	rm -rf --one-file-system "$work/base"
}

# The first mirror that apt has for the suite, in either format of its sources.
mirror() {
	{
		find /etc/apt/sources.list /etc/apt/sources.list.d -name '*.list' -exec \
			sed -n "s/^deb  *\(\[[^]]*\]  *\)\{0,1\}\([^ ]*\)  *$suite .*/\2/p" {} + 2>/dev/null || true
		find /etc/apt/sources.list.d -name '*.sources' -exec awk -v suite="$suite" '
			function flush() { if (suites ~ "(^| )" suite "( |$)") print uri; uri = suites = "" }
			/^URIs:/ { uri = $2 }
			/^Suites:/ { suites = $0 }
			/^$/ { flush() }
			END { flush() }' {} + 2>/dev/null || true
	} | head -n 1
}

# What apt here is told about proxies, for apt there.
apt_proxies() {
	apt-config dump | grep -i '^Acquire::https\{0,1\}::Proxy ' || true
}

make_base() {
	url=$(mirror)
	if [ -z "$url" ]; then
		echo "no mirror of $suite among this machine's apt sources" >&2
		exit 1
	fi
	eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
	[ -z "${http_proxy:-}" ] || export http_proxy
	debootstrap --variant=minbase --include=ca-certificates,git "$suite" "$work/base" "$url"
	apt_proxies >"$work/base/etc/apt/apt.conf.d/90proxies"
}

prepare() {
	root=$1
	cp -a "$work/base" "$root"
	git clone --quiet "$repository" "$root/root/curtsy"
	mount -t proc proc "$root/proc"
	mount -t tmpfs -o mode=755 tmpfs "$root/dev"
	mkdir "$root/dev/shm" "$root/dev/pts"
	mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
	mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
	ln -s pts/ptmx "$root/dev/ptmx"
	ln -s /proc/self/fd "$root/dev/fd"
	ln -s /proc/self/fd/0 "$root/dev/stdin"
	ln -s /proc/self/fd/1 "$root/dev/stdout"
	ln -s /proc/self/fd/2 "$root/dev/stderr"
	mknod -m 666 "$root/dev/null" c 1 3
	mknod -m 666 "$root/dev/zero" c 1 5
	mknod -m 666 "$root/dev/full" c 1 7
	mknod -m 666 "$root/dev/random" c 1 8
	mknod -m 666 "$root/dev/urandom" c 1 9
	mknod -m 666 "$root/dev/tty" c 5 0
}

# As continuous integration would: no terminal, nothing of this machine's environment.
run() {
	chroot "$work/$1" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		sh -c "cd /root/curtsy && sh tools/bootstrap.sh $1" </dev/null
}

[ $# -gt 0 ] || set -- demo check
for goal; do
	case $goal in
	demo | check) ;;
	*)
		echo "usage: sh tools/packaging/fresh-debian.sh [demo|check]..." >&2
		exit 2
		;;
	esac
done

trap cleanup EXIT
trap 'exit 130' INT TERM
echo "making a minimal $suite in $work"
make_base >"$work/base.log" 2>&1 || {
	tail -n 5 "$work/base.log" >&2
	exit 1
}

failures=0
for goal; do
	prepare "$work/$goal"
	if run "$goal" >"$work/$goal.log" 2>&1; then
		result='works'
	else
		result="FAILED ($?)"
		failures=$((failures + 1))
	fi
	printf 'sh tools/bootstrap.sh %-5s on a bare %s: %s (%s)\n' "$goal" "$suite" "$result" "$work/$goal.log"
	tail -n 3 "$work/$goal.log" | sed 's/^/    /'
done
exit "$failures"
