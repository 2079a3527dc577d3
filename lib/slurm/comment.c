/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* comment.c - why we end a job, where its user and accounting find it */
#include "lib/slurm/slurmctld.h"

#define NOT_STARTED "the job was not started: "
#define WAITS "the job waits: "

/* What others wrote, with a "; " behind it; without what we wrote of an earlier run. */
static char *of_others(const char *text)
{
	const char *ours = text ? xstrstr(text, SK8_END_COMMENT) : NULL;

	if (ours)
		return xstrndup(text, ours - text);
	return (text && text[0]) ? xstrdup_printf("%s; ", text) : xstrdup("");
}

/* Is the user's one a copy of ours? */
static bool has_copy(const job_record_t *job_ptr)
{
	return job_ptr->comment && xstrstr(job_ptr->comment, SK8_END_COMMENT) && !xstrcmp(job_ptr->comment, job_ptr->system_comment);
}

extern void sk8_comment_begin(job_record_t *job_ptr, const char *text, struct sk8_comment *before)
{
	char *kept = of_others(job_ptr->system_comment);

	*before = (struct sk8_comment) {
		.system_comment = job_ptr->system_comment,
		.comment = job_ptr->comment,
		.silent = !job_ptr->comment || !job_ptr->comment[0] || has_copy(job_ptr),
	};
	job_ptr->system_comment = xstrdup_printf("%s" SK8_END_COMMENT "%s", kept, text);
	xfree(kept);
	/* 22.05 sends accounting the comment, but not this one */
	if (before->silent)
		job_ptr->comment = xstrdup(job_ptr->system_comment);
}

extern void sk8_comment_undo(job_record_t *job_ptr, struct sk8_comment *before)
{
	xfree(job_ptr->system_comment);
	job_ptr->system_comment = before->system_comment;
	if (!before->silent)
		return;
	xfree(job_ptr->comment);
	job_ptr->comment = before->comment;
}

extern void sk8_comment_keep(job_record_t *job_ptr, struct sk8_comment *before, bool again)
{
	xfree(before->system_comment);
	if (!before->silent)
		return;
	xfree(before->comment);
	/* accounting has the run that ended; the next one is another */
	if (again)
		xfree(job_ptr->comment);
}

extern void sk8_comment_not_started(job_record_t *job_ptr, const char *why)
{
	struct sk8_comment before;
	char *text = xstrdup_printf(NOT_STARTED "%s", why);

	sk8_comment_begin(job_ptr, text, &before);
	sk8_comment_keep(job_ptr, &before, false);
	xfree(text);
}

extern char *sk8_not_started_text(const char *why)
{
	return xstrdup_printf(SK8_END_COMMENT NOT_STARTED "%s; submit it again later", why);
}

/* What we wrote that begins so goes; false: there is none. */
static bool forget(job_record_t *job_ptr, const char *text)
{
	char *ours = xstrstr(job_ptr->system_comment, text);
	const bool copied = ours && has_copy(job_ptr);

	if (!ours)
		return false;
	if (copied)
		xfree(job_ptr->comment);
	if (ours == job_ptr->system_comment)
		xfree(job_ptr->system_comment);
	else if ((ours - job_ptr->system_comment > 1) && !xstrncmp(ours - 2, "; ", 2))
		ours[-2] = '\0';
	else
		*ours = '\0';
	last_job_update = time(NULL);
	return true;
}

extern void sk8_comment_started(job_record_t *job_ptr)
{
	(void) forget(job_ptr, SK8_END_COMMENT NOT_STARTED);
}

extern bool sk8_comment_waits(job_record_t *job_ptr, const char *hint)
{
	const char *ours = xstrstr(job_ptr->system_comment, SK8_END_COMMENT WAITS);
	const int known = strlen(SK8_END_COMMENT);
	struct sk8_comment before;
	char *text;

	if (!hint)
		return forget(job_ptr, SK8_END_COMMENT WAITS);
	text = xstrdup_printf(WAITS "%s", hint + (xstrncmp(hint, SK8_END_COMMENT, known) ? 0 : known));
	if (ours && !xstrcmp(ours + known, text)) {
		xfree(text);
		return false;
	}
	sk8_comment_begin(job_ptr, text, &before);
	sk8_comment_keep(job_ptr, &before, false);
	last_job_update = time(NULL);
	xfree(text);
	return true;
}
