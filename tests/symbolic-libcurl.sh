#!/bin/sh
# SPDX-License-Identifier: MIT
# Links a libcurl whose inner calls cannot be seen from outside (-Bsymbolic-functions, as some
# distributions build theirs), from this system's own static libcurl:
#     symbolic-libcurl.sh OUTPUT
# It needs the same libraries as the installed shared one.
set -eu
output=$1
installed=$(ldconfig -p | awk '$1 == "libcurl.so.4" { print $NF; exit }')
archive=$(${CC:-cc} -print-file-name=libcurl.a)
if [ -z "$installed" ] || [ ! -f "$archive" ]; then
    echo "no libcurl.so.4 or libcurl.a here" >&2
    exit 1
fi
libraries=$(readelf -d "$installed" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | while read -r name; do
    ldd "$installed" | awk -v name="$name" '$1 == name { print $3 }'
done)
mkdir -p "$(dirname "$output")"
# shellcheck disable=SC2086 # one word a library
${CC:-cc} -shared -o "$output" -Wl,-soname,libcurl.so.4 -Wl,-Bsymbolic-functions \
    -Wl,--whole-archive "$archive" -Wl,--no-whole-archive $libraries
