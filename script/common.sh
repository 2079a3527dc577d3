# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# Sourced by the scripts beside it: messages, progress, the cache folder.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
me=$(basename "$(cd "$(dirname "$0")" && pwd)")/$(basename "$0") # script/demo

# Progress and errors go to stderr: stdout is for the result.
say() { printf '%s: %s\n' "$me" "$*" >&2; }
die() { say "error: $*"; exit 1; }

# usage: prints the comment block at the top of the calling script.
usage() { sed -n '/^# SPDX/d; /^#!/d; /^#/!q; s/^# \{0,1\}//p' "$0"; }

# follow PID LOG WHAT: waits for the end of a child whose output goes to LOG. Tells how long it
# has taken and LOG's last line: on a terminal each second in one line, else every ten seconds.
# Returns the child's exit code.
follow() {
	local started=$SECONDS next=2 text rc=0
	while kill -0 "$1" 2> /dev/null; do
		if [ $((SECONDS - started)) -ge $next ]; then
			text="$3: $((SECONDS - started)) s: $(tail -n 1 "$2" | tr -d '\r' | cut -c 1-100)"
			if [ -t 2 ]; then
				printf '\r\033[K%s' "${text:0:${COLUMNS:-80} - 1}" >&2
				next=$((next + 1))
			else
				say "$text"
				next=$((next + 10))
			fi
		fi
		sleep 0.1
	done
	wait "$1" || rc=$?
	if [ -t 2 ]; then printf '\r\033[K' >&2; fi
	return $rc
}

# cache_dir: where downloads and builds are kept between runs.
cache_dir() {
	local dir=${XDG_CACHE_HOME:+$XDG_CACHE_HOME/slurm-k8s}
	dir=${dir:-$root/build/cache}
	mkdir -p "$dir" || return 1
	echo "$dir"
}
