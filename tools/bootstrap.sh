#!/bin/sh
# SPDX-License-Identifier: MIT
#
# From a bare machine to a running demo or test suite:
#
#     sh tools/bootstrap.sh demo|check|build|lint [--yes]
#
# looks for what is needed, names the packages that are missing, installs them (asking first on a
# terminal, unless --yes is given), and calls make.  What is there is found by looking for the thing
# itself and not for its package, so that a machine with its own compiler or library is left alone,
# and so that this also helps where the packages have other names: there it says what to install.
set -eu

usage='usage: sh tools/bootstrap.sh demo|check|build|lint [--yes]'

# Each line: the goals that need it, how to look for it, what to look for, Debian's package.
needs() {
	cat <<-'END'
		build,demo,check,lint  command  make                 make
		build,demo,check,lint  command  cc                   gcc
		build,demo,check,lint  header   stdlib.h             libc6-dev
		build,demo,check,lint  header   curl/curl.h          libcurl4-openssl-dev
		build,demo,check,lint  library  libinih.a            libinih-dev
		build,demo,check,lint  header   jansson.h            libjansson-dev
		demo,check             python   http.server          python3
		demo,check             command  curl                 curl
		check                  command  c++                  g++
		check                  command  ar                   binutils
		check                  command  git                  git
		check                  command  cmake                cmake
		check                  command  openssl              openssl
		check                  command  strace               strace
		check                  command  ps                   procps
		check                  command  php                  php-cli
		check                  php      curl                 php-curl
		check                  command  nghttpd              nghttp2-server
		check,lint             header   cmocka.h             libcmocka-dev
		check                  python   pytest               python3-pytest
		check                  python   xdist                python3-pytest-xdist
		check                  python   pycurl               python3-pycurl
		lint                   command  mandoc               mandoc
		lint                   command  clang-format         clang-format
		lint                   command  clang-tidy           clang-tidy
		lint                   command  shellcheck           shellcheck
	END
}

say() {
	printf 'bootstrap: %s\n' "$*"
}

fail() {
	printf 'bootstrap: %s\n' "$*" >&2
	exit 1
}

has_header() {
	if command -v cc >/dev/null 2>&1; then
		echo "#include <$1>" | cc -E -x c - >/dev/null 2>&1
	else
		for folder in /usr/include /usr/include/* /usr/local/include; do
			[ ! -e "$folder/$1" ] || return 0
		done
		return 1
	fi
}

# The compiler prints a library that it does not find as it was given, without a folder.
has_library() {
	case $(cc -print-file-name="$1" 2>/dev/null) in
	/*) return 0 ;;
	*) return 1 ;;
	esac
}

# The distribution's own interpreter, which make also takes, and not another one earlier in PATH.
has_python() {
	"${PYTHON:-/usr/bin/python3}" -c "import $1" >/dev/null 2>&1
}

has() {
	case $1 in
	command) command -v "$2" >/dev/null 2>&1 ;;
	header) has_header "$2" ;;
	library) has_library "$2" ;;
	python) has_python "$2" ;;
	php) php -r "exit(extension_loaded('$2') ? 0 : 1);" >/dev/null 2>&1 ;;
	esac
}

# What is missing for the goal: "KIND NAME PACKAGE", a line each.
missing() {
	needs | while read -r goals kind name package; do
		case ,$goals, in
		*,"$1",*) has "$kind" "$name" </dev/null || echo "$kind $name $package" ;;
		esac
	done
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null 2>&1; then
		sudo "$@"
	else
		fail "not root, and there is no sudo: as root, run: $*"
	fi
}

apt_install() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$@" </dev/null
}

are_listed() {
	[ "$(LC_ALL=C apt-cache policy "$@" 2>/dev/null | grep -c '^  Candidate: [^(]')" -eq $# ]
}

# A machine that has never fetched its lists of packages, or whose lists are older than the archive,
# needs them first.
install_packages() {
	if are_listed "$@" && apt_install "$@"; then
		return 0
	fi
	say 'fetching the lists of packages'
	as_root apt-get update </dev/null || fail 'apt-get update failed'
	apt_install "$@" || fail 'apt-get install failed'
}

may_install() {
	if [ -n "$yes" ] || [ ! -t 0 ]; then
		return 0
	fi
	printf 'bootstrap: install them? [Y/n] '
	read -r answer || return 1
	case $answer in
	'' | [Yy] | [Yy][Ee][Ss]) return 0 ;;
	*) return 1 ;;
	esac
}

bring_in() {
	lacking=$(missing "$1")
	[ -n "$lacking" ] || return 0
	if ! command -v apt-get >/dev/null 2>&1; then
		say "not Debian or one of its kin (there is no apt-get), so please install these yourself:" >&2
		echo "$lacking" | while read -r kind name package; do
			printf '    %-8s %-16s (on Debian: %s)\n' "$kind" "$name" "$package" >&2
		done
		exit 1
	fi

	packages=$(echo "$lacking" | cut -d ' ' -f 3 | sort -u | tr '\n' ' ')
	say "missing packages: ${packages% }"
	may_install || fail "not installed; to do so: apt-get install ${packages% }"
	# shellcheck disable=SC2086 # a list of words
	install_packages $packages

	lacking=$(missing "$1")
	[ -z "$lacking" ] || fail "installed, and still not found: $(echo "$lacking" | cut -d ' ' -f 1,2 | tr '\n' ';')"
}

goal=
yes=
for argument; do
	case $argument in
	demo | check | build | lint) goal=$argument ;;
	--yes | -y) yes=1 ;;
	-h | --help)
		echo "$usage"
		exit 0
		;;
	*)
		echo "$usage" >&2
		exit 2
		;;
	esac
done
if [ -z "$goal" ]; then
	echo "$usage" >&2
	exit 2
fi

cd "$(dirname "$0")/.."
bring_in "$goal"

processors=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
case $goal in
build) exec make -j"$processors" all ;;
check) make -j"$processors" tests-built ;;
demo) make -j"$processors" all ;;
esac
exec make "$goal"
