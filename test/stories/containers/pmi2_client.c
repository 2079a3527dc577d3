/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * pmi2_client.c - what an MPI library does at its start, by PMI2's wire protocol with slurmstepd (PMI_FD): each task puts a
 * value, all meet, each gets that of the next one and prints it. Exit code 1 if slurmstepd does not play.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fd;

static void fail(const char *what)
{
	fprintf(stderr, "pmi2_client: %s\n", what);
	exit(1);
}

static void get(char *to, size_t size)
{
	while (size) {
		const ssize_t got = read(fd, to, size);

		if (got <= 0)
			fail("slurmstepd has hung up");
		to += got;
		size -= (size_t) got;
	}
}

/* A command of PMI2, after a length of six characters; the answer stays until the next one. */
static const char *ask(const char *command)
{
	static char answer[4096];
	char length[7] = "";
	size_t size;

	dprintf(fd, "%6zu%s", strlen(command), command);
	get(length, 6);
	if ((size = strtoul(length, NULL, 10)) >= sizeof(answer))
		fail("an answer is too long");
	get(answer, size);
	answer[size] = '\0';
	if (!strstr(answer, "rc=0;"))
		fail(answer);
	return answer;
}

static int number(const char *name)
{
	const char *text = getenv(name);

	if (!text)
		fail("this is no task of srun --mpi=pmi2");
	return atoi(text);
}

int main(void)
{
	const int rank = number("PMI_RANK"), size = number("PMI_SIZE");
	char command[256], c = 0;
	const char *value;

	fd = number("PMI_FD");
	dprintf(fd, "cmd=init pmi_version=2 pmi_subversion=0\n");
	while (c != '\n')
		get(&c, 1);
	snprintf(command, sizeof(command), "cmd=fullinit;pmijobid=%s;pmirank=%d;threaded=FALSE;", getenv("PMI_JOBID"), rank);
	ask(command);
	snprintf(command, sizeof(command), "cmd=kvs-put;key=card-%d;value=of %d;", rank, rank);
	ask(command);
	ask("cmd=kvs-fence;");
	snprintf(command, sizeof(command), "cmd=kvs-get;jobid=%s;srcid=-1;key=card-%d;", getenv("PMI_JOBID"), (rank + 1) % size);
	if (!(value = strstr(ask(command), "value=")))
		fail("no value");
	printf("%d has the card %.*s\n", rank, (int) strcspn(value + 6, ";"), value + 6);
	ask("cmd=finalize;");
	return 0;
}
