/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* errors.c - what Slurm answered, as struct sk8_outcome */
#include "lib/slurm/slurmctld.h"
#include "lib/slurm/error_table.h"

extern void sk8_outcome_error(struct sk8_outcome *out, int rc, const char *message)
{
	const char *text;

	if (rc == SK8_TOO_MANY_JOBS)
		rc = EAGAIN;	/* what it is to the engine */
	out->rc = rc;
	out->fatal = sk8_error_is_fatal(rc);
	out->text[0] = '\0';
	if (!rc)
		return;
	/* what a site's job_submit plugin says is meant for the user */
	if (message && message[0])
		text = message;
	else if (!(text = sk8_error_text(rc)))
		text = slurm_strerror(rc);
	sk8_one_line(out->text, sizeof(out->text), text);
}
