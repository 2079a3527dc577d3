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
step_configure() { configure_in "$build"; }
step_make() { make -C "$build" -j"$jobs"; }
step_kubernetes() { test/kubernetes/build; }

configure_in() { # FOLDER [OPTION...]
	local folder=$1 options=("--with-slurm-source=$(cat "$build/slurm-source.path")" "${@:2}")
	[ -z "$given" ] || options+=("--with-slurm=${given%%:*}")
	mkdir -p "$folder"
	[ -f "$folder/config.status" ] && [ "$(cat "$folder/.options" 2> /dev/null)" = "${options[*]}" ] && return
	(cd "$folder" && "$root/configure" -C "${options[@]}") && echo "${options[*]}" > "$folder/.options"
}
