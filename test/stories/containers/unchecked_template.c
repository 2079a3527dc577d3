/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * unchecked_template.c - a plugin as a user may have one by a slurm.conf of his own: it tells slurmctld that the job wants a template,
 * as spank_k8s.so does, and looks at nothing. Its argument is the file with the text, which has no zero byte.
 */
#include <stdio.h>
#include <stdlib.h>
#include <slurm/spank.h>

SPANK_PLUGIN(unchecked_template, 1);

extern int slurm_spank_init_post_opt(spank_t spank, int ac, char *argv[])
{
	static char text[2 << 20];
	FILE *file;

	if ((spank_context() != S_CTX_LOCAL) || (ac != 1))
		return 0;
	if (!(file = fopen(argv[0], "r")) || !fread(text, 1, sizeof(text) - 1, file))
		exit(9);
	fclose(file);
	return spank_job_control_setenv(spank, "K8S_TEMPLATE", text, 1) == ESPANK_SUCCESS ? 0 : -1;
}
