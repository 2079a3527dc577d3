/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* task_prolog.c - see there. Slurm's own are _run_script_and_set_env() and _proc_stdout() in slurmstepd's task.c. */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE
#endif
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/slurm/step_prologs.h"
#include "plugins/spank/task_prolog.h"
#include "plugins/spank/way_back.h"

#ifndef SYS_close_range	/* Linux 5.9; the number is the same on all architectures (asm-generic/unistd.h) */
# define SYS_close_range 436
#endif
enum { MOST = 1048576, MANY = 65536, CANNOT_RUN = 127 };	/* bytes of what a script says; files; as a shell says it */

static struct sk8_step_prologs taken;

extern bool sk8_take_task_prologs(spank_t spank)
{
	char *version = NULL;
	uint32_t job_id;

	if ((spank_get_item(spank, S_SLURM_VERSION, &version) == ESPANK_SUCCESS) &&
	    (spank_get_item(spank, S_JOB_ID, &job_id) == ESPANK_SUCCESS))
		sk8_take_step_prologs(spank, version, job_id, &taken);
	return (!taken.of_site && !taken.of_user) || sk8_keep_way_back();
}

/* ---- what a script says ------------------------------------------------------------ */

static char *skip_blanks(char *text)
{
	while (isspace((unsigned char) *text))
		text++;
	return text;
}

static void cut_blanks(char *text, char *end)
{
	while ((end > text) && isspace((unsigned char) end[-1]))
		end--;
	*end = '\0';
}

static void write_all(const char *text, size_t size)
{
	ssize_t done;

	while (size && (((done = write(STDOUT_FILENO, text, size)) >= 0) || (errno == EINTR))) {
		text += done > 0 ? done : 0;
		size -= done > 0 ? (size_t) done : 0;
	}
}

static void export(spank_t spank, char *name)
{
	char *value = strchr(name, '=');

	if (!value)
		return;
	cut_blanks(name, value);
	if (spank_setenv(spank, name, value + 1, 1) != ESPANK_SUCCESS)
		slurm_error("slurm-k8s: TaskProlog: the variable %s cannot be set", name);
}

/* line: without its end */
static void obey(spank_t spank, char *line)
{
	if (!strncmp(line, "print ", 6)) {
		line = skip_blanks(line + 6);
		write_all(line, strlen(line));
		write_all("\n", 1);
	} else if (!strncmp(line, "export ", 7)) {
		export(spank, skip_blanks(line + 7));
	} else if (!strncmp(line, "unset ", 6)) {
		line = skip_blanks(line + 6);
		cut_blanks(line, line + strlen(line));
		if (line[0])
			(void) spank_unsetenv(spank, line);
	}
}

static void obey_all(spank_t spank, char *text)
{
	char *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		obey(spank, line);
}

/* ---- the script on the node ---------------------------------------------------------- */

/* The task's variables, and Slurm's word for what this is. NULL: no memory, or there are none */
static char **variables(spank_t spank)
{
	static char context[] = "SLURM_SCRIPT_CONTEXT=prolog_task";
	char **of_task = NULL, **all;
	size_t count = 0, kept = 0;

	if ((spank_get_item(spank, S_JOB_ENV, &of_task) != ESPANK_SUCCESS) || !of_task)
		return NULL;
	while (of_task[count])
		count++;
	if (!(all = calloc(count + 2, sizeof(*all))))
		return NULL;
	for (size_t i = 0; i < count; i++)
		if (strncmp(of_task[i], context, sizeof("SLURM_SCRIPT_CONTEXT=") - 1))
			all[kept++] = of_task[i];
	all[kept] = context;
	return all;
}

static void close_others(void)
{
	const long most = sysconf(_SC_OPEN_MAX);

	if (!syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0))
		return;
	for (int fd = STDERR_FILENO + 1; (fd < most) && (fd < MANY); fd++)
		close(fd);
}

/* The child's part; what it says goes into `says`. */
static void be_script(const char *what, const char *script, const char *folder, char **env, int says)
{
	char *words[] = { (char *) script, NULL };
	int nothing;

	if (!sk8_go_back()) {
		slurm_error("slurm-k8s: %s: no way back from the container: %s", what, strerror(errno));
		_exit(CANNOT_RUN);
	}
	if (!folder[0] || chdir(folder))
		(void) !chdir("/");
	if ((script[0] != '/') || access(script, R_OK | X_OK) || ((nothing = open("/dev/null", O_RDWR)) < 0)) {
		slurm_error("slurm-k8s: %s: %s cannot be executed: %s", what, script, strerror(script[0] == '/' ? errno : EINVAL));
		_exit(CANNOT_RUN);
	}
	if ((dup2(nothing, STDIN_FILENO) < 0) || (dup2(says, STDOUT_FILENO) < 0) || (dup2(says, STDERR_FILENO) < 0))
		_exit(CANNOT_RUN);
	close_others();
	setpgid(0, 0);
	execve(script, words, env);
	_exit(CANNOT_RUN);
}

/* Until its end; what is too much is read, too, or the script would wait for ever. To be freed */
static char *read_all(int fd)
{
	char *text = malloc(MOST + 1), rest[4096];
	size_t size = 0;
	ssize_t got;

	do {
		const bool full = !text || (size == MOST);

		got = read(fd, full ? rest : text + size, full ? sizeof(rest) : MOST - size);
		if ((got > 0) && !full)
			size += (size_t) got;
	} while ((got > 0) || ((got < 0) && (errno == EINTR)));
	if (text)
		text[size] = '\0';
	return text;
}

static void close_way_back(void)
{
	if (sk8_close_way_back())
		return;
	slurm_error("slurm-k8s: TaskProlog: the task's capabilities cannot be dropped: %s", strerror(errno));
	_exit(CANNOT_RUN);
}

/* Its exit code, 1 if a signal ended it. last: no other script follows. *said: to be freed */
static int run(spank_t spank, const char *what, const char *script, const char *folder, bool last, char **said)
{
	char **env = variables(spank);
	int status = 0, ends[2];
	pid_t child = -1;

	if (env && !pipe2(ends, O_CLOEXEC)) {
		if (!(child = fork()))
			be_script(what, script, folder, env, ends[1]);
		close(ends[1]);
		if (last)
			close_way_back();	/* before anything is heard of a script that is its user's */
		if (child > 0)
			*said = read_all(ends[0]);
		close(ends[0]);
	}
	free(env);
	if (child < 0) {
		slurm_error("slurm-k8s: %s: %s", what, strerror(errno));
		return CANNOT_RUN;
	}
	while ((waitpid(child, &status, 0) < 0) && (errno == EINTR))
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void run_one(spank_t spank, const char *what, const char *script, const char *folder, bool last)
{
	char *said = NULL;
	const int status = run(spank, what, script, folder, last, &said);

	if (said)
		obey_all(spank, said);
	free(said);
	if (!status)
		return;
	slurm_error("%s failed status=%d", what, status);	/* as Slurm's own */
	_exit(status);
}

extern void sk8_run_task_prologs(spank_t spank, const char *folder)
{
	if (taken.of_site)
		run_one(spank, "TaskProlog", taken.of_site, folder, !taken.of_user);
	if (taken.of_user)
		run_one(spank, "--task-prolog", taken.of_user, folder, true);
}
