# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# Sourced by script/test and script/demo, after common.sh: how this tree is built.
# Each step stands on those before it and does nothing if nothing has changed.

# in another Debian (script/debian-root) a folder of its own
build=$root/build${SK8_DEBIAN:+/debian-$SK8_DEBIAN}
jobs=$(nproc 2> /dev/null || echo 2)

step_source() { script/slurm-source > "$build/slurm-source.path"; }
step_autoreconf() { [ configure -nt configure.ac ] || autoreconf -fi; }
step_configure() { configure_in "$build"; }
step_make() { make -C "$build" -j"$jobs"; }
step_kubernetes() { test/kubernetes/build; }

configure_in() { # FOLDER [OPTION...]
	local folder=$1 options=("--with-slurm-source=$(cat "$build/slurm-source.path")" "${@:2}")
	mkdir -p "$folder"
	[ -f "$folder/config.status" ] && [ "$(cat "$folder/.options" 2> /dev/null)" = "${options[*]}" ] && return
	(cd "$folder" && "$root/configure" -C "${options[@]}") && echo "${options[*]}" > "$folder/.options"
}
