# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# Bash completion for slurm-k8s: commands and options are what its --help says.
_slurm_k8s() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} words
	case $before:$word in
	--config:* | --slurm-conf:*)
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
		;;
	--node:*)
		words=$(sinfo -h -N -o %N 2> /dev/null | sort -u)
		;;
	--format:*)
		words="table slurm devices"
		;;
	debug:[!-]* | debug:)
		words="on off verbose debug"
		;;
	*)
		if [ "$COMP_CWORD" = 1 ]; then
			words=$("${COMP_WORDS[0]}" --help 2> /dev/null | sed -n 's/^  \(-*[a-z][a-z-]*\) .*/\1/p')
		else
			words="--help "$("${COMP_WORDS[0]}" "$command" --help 2> /dev/null | sed -n 's/^  \(--[a-z-]*\).*/\1/p')
		fi
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -F _slurm_k8s slurm-k8s
