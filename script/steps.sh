# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# Sourced by script/test and script/demo, after common.sh: how this tree is built.
# Each step stands on those before it and does nothing if nothing has changed.

# A Slurm of which a variable says where it is, SK8_SLURM_26_05=PREFIX:SOURCE. SK8_GIVEN is its release.
given_name() { echo "SK8_SLURM_${1//./_}"; } # RELEASE

# in another Debian (script/debian-root), or with another Slurm, a folder of its own
build=$root/build${SK8_DEBIAN:+/debian-$SK8_DEBIAN}${SK8_GIVEN:+/slurm-$SK8_GIVEN}
given=
if [ -n "${SK8_GIVEN:-}" ]; then
	export SK8_BUILD=$build # for tests in Python
	given=$(given_name "$SK8_GIVEN") given=${!given}
fi
jobs=$(nproc 2> /dev/null || echo 2)

step_source() { if [ -n "$given" ]; then echo "${given#*:}"; else script/slurm-source; fi > "$build/slurm-source.path"; }
step_autoreconf() { [ configure -nt configure.ac ] || autoreconf -fi; }
# With the compiler flags of the packages: what is tested is what is shipped.
step_configure() {
	local flags=()
	! command -v dpkg-buildflags > /dev/null ||
		mapfile -t flags < <(package_flags --export=cmdline | xargs -n 1 | grep -E '^(C|CXX|CPP|LD)FLAGS=')
	# with another Slurm only what is for Slurm: the rest is in the machine's own build
	[ "$build" = "$root/build" ] || flags+=(--disable-engine-tests)
	configure_in "$build" "${flags[@]}"
}
package_flags() { DEB_BUILD_MAINT_OPTIONS=hardening=+all,-bindnow dpkg-buildflags "$@"; } # as in debian/rules

# A debugger is told functions and lines, but no variables: that is a fifth of the time of an optimizing compiler. The code is the
# same. script/make-packages alone makes packages with all of it.
tell_debugger_less() { export DEB_CFLAGS_APPEND=${DEB_CFLAGS_APPEND:--g1} DEB_CXXFLAGS_APPEND=${DEB_CXXFLAGS_APPEND:--g1}; }

# What was compiled once is not again, by no build of this tree: packages are made of the same objects, but for a few.
# A cache that somebody has set up already is taken as it is.
use_compiler_cache() {
	if ! [ -d /usr/lib/ccache ] || [[ :$PATH: == */ccache:* ]]; then return; fi
	export PATH=/usr/lib/ccache:$PATH
	[ -z "${CCACHE_DIR:-}" ] || return 0
	CCACHE_DIR=$(cache_dir)/ccache
	# rpmbuild has a locale of its own; the others are for precompiled headers
	export CCACHE_DIR CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1 CCACHE_SLOPPINESS=locale,pch_defines,time_macros CCACHE_MAXSIZE=4G
}
# Under address and undefined sanitizers, by clang: what test/fuzz/run fuzzes, and what script/test runs so. Both in one
# folder, for one build of the libraries. script/test, which fuzzes for a minute, says SK8_FUZZ_FLAGS=-O0: with -O1 clang takes
# twice as long.
find_clang() { # prints the name of a clang++ that has libFuzzer and understands our libstdc++
	local cxx
	for cxx in clang++-16 clang++ clang++-19 clang++-18 clang++-17; do
		command -v $cxx > /dev/null || continue
		printf '%s\n' '#include <cstdint>' '#include <ranges>' '#include <string>' \
			'extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *, std::size_t) { return 0; }' |
			$cxx -std=c++20 -fsanitize=fuzzer,address -x c++ - -o /dev/null 2> /dev/null && { echo $cxx; return; }
	done
	return 1
}
configure_fuzz() { # FOLDER CXX
	configure_in "$1" "CC=${2/++/}" "CXX=$2" "CXXFLAGS=${SK8_FUZZ_FLAGS:--O1} -g1" --enable-fuzz --enable-sanitize=address,undefined
}
step_make() { make -C "$build" -j"$jobs"; }
step_kubernetes() { test/kubernetes/build; }

configure_in() { # FOLDER [OPTION...]
	local folder=$1 options=("--with-slurm-source=$(cat "$build/slurm-source.path")" "${@:2}")
	[ -z "$given" ] || options+=("--with-slurm=${given%%:*}")
	mkdir -p "$folder"
	[ -f "$folder/config.status" ] && [ "$(cat "$folder/.options" 2> /dev/null)" = "${options[*]}" ] && return
	rm -f "$folder/config.cache" # was found out with other options
	(cd "$folder" && "$root/configure" -C "${options[@]}") && echo "${options[*]}" > "$folder/.options"
}
