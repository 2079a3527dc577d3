/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* comment.c - why we end a job, where its user and accounting find it */
#include "lib/slurm/slurmctld.h"

/* What others wrote, with a "; " behind it; without what we wrote of an earlier run. */
static char *of_others(const char *text)
{
	const char *ours = text ? xstrstr(text, SK8_END_COMMENT) : NULL;

	if (ours)
		return xstrndup(text, ours - text);
	return (text && text[0]) ? xstrdup_printf("%s; ", text) : xstrdup("");
}

extern void sk8_comment_begin(job_record_t *job_ptr, const char *text, struct sk8_comment *before)
{
	char *kept = of_others(job_ptr->system_comment);

	*before = (struct sk8_comment) {
		.system_comment = job_ptr->system_comment,
		.silent = !job_ptr->comment || !job_ptr->comment[0],
	};
	job_ptr->system_comment = xstrdup_printf("%s" SK8_END_COMMENT "%s", kept, text);
	xfree(kept);
	/* 22.05 sends accounting the comment, but not this one */
	if (before->silent) {
		xfree(job_ptr->comment);
		job_ptr->comment = xstrdup(job_ptr->system_comment);
	}
}

extern void sk8_comment_undo(job_record_t *job_ptr, struct sk8_comment *before)
{
	xfree(job_ptr->system_comment);
	job_ptr->system_comment = before->system_comment;
	if (before->silent)
		xfree(job_ptr->comment);
}

extern void sk8_comment_keep(job_record_t *job_ptr, struct sk8_comment *before, bool again)
{
	xfree(before->system_comment);
	/* accounting has the run that ended; the next one is another */
	if (again && before->silent)
		xfree(job_ptr->comment);
}
