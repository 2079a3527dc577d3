# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# Sourced by the scripts beside it: messages, the cache folder.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
me=$(basename "$(cd "$(dirname "$0")" && pwd)")/$(basename "$0") # script/demo

# Progress and errors go to stderr: stdout is for the result.
say() { printf '%s: %s\n' "$me" "$*" >&2; }
die() { say "error: $*"; exit 1; }

# usage: prints the comment block at the top of the calling script.
usage() { sed -n '/^# SPDX/d; /^#!/d; /^#/!q; s/^# \{0,1\}//p' "$0"; }

# cache_dir: where downloads and builds are kept between runs.
cache_dir() {
	local dir=${XDG_CACHE_HOME:+$XDG_CACHE_HOME/slurm-k8s}
	dir=${dir:-$root/build/cache}
	mkdir -p "$dir" || return 1
	echo "$dir"
}
