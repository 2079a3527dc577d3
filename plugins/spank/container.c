/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* container.c - see there. Links nothing but libc; SPANK's interface is all that it knows of Slurm. */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <slurm/slurm.h>
#include "lib/sk8_container.h"
#include "plugins/spank/container.h"
#include "plugins/spank/environment.h"
#include "plugins/spank/mounts.h"
#include "plugins/spank/namespaces.h"
#include "plugins/spank/options.h"
#include "plugins/spank/service_account.h"
#include "plugins/spank/task_prolog.h"
#include "plugins/spank/x11.h"

enum { LONGEST_WAIT_MS = 15000, LOOKS_AGAIN_MS = 1000 };

static char begins_in[PATH_MAX];	/* slurmstepd: the folder of tasks; "" = not known */

/* ---- where the container is ------------------------------------------------------- */

/* The file of the job's container; name: of another one of its pod. false: this is none that slurmd has started */
static bool container_file(spank_t spank, const char *name, char *folder, char *file, size_t size)
{
	const char *node = getenv("SLURMD_NODENAME");	/* slurmstepd's own, not the job's */
	uint32_t job_id;

	if (!node || strchr(node, '/') || (spank_get_item(spank, S_JOB_ID, &job_id) != ESPANK_SUCCESS))
		return false;
	return (snprintf(folder, size, SK8_CONTAINER_FOLDER, node) < (int) size) &&
		(snprintf(file, size, SK8_CONTAINER_FOLDER "/%u%s%s", node, job_id, name[0] ? "." : "", name) < (int) size);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Until something comes into the folder. */
static void wait_for_news(const char *folder, const char *file, int longest)
{
	struct pollfd news = { .fd = inotify_init1(IN_CLOEXEC), .events = POLLIN };

	if (news.fd < 0)
		return;
	/* what came before the watch shows now */
	if ((inotify_add_watch(news.fd, folder, IN_MOVED_TO | IN_CREATE) >= 0) && access(file, F_OK))
		(void) poll(&news, 1, longest < LOOKS_AGAIN_MS ? longest : LOOKS_AGAIN_MS);
	close(news.fd);
}

/* Of the job's pod, not the one that is the job's own. */
static bool is_another(void)
{
	return sk8_wish.container[0] && strcmp(sk8_wish.container, "job");
}

/* The container of the job alone has the token. */
static bool has_account(void)
{
	return sk8_wish.service_account[0] && !is_another();
}

/* A batch script and salloc's shell stay on the node. */
static bool is_for_container(spank_t spank)
{
	uint32_t step_id;

	return (sk8_wish.image[0] || sk8_wish.template[0] || sk8_wish.container[0] || sk8_wish.service_account[0]) &&
		(spank_get_item(spank, S_JOB_STEPID, &step_id) == ESPANK_SUCCESS) &&
		(step_id != SLURM_BATCH_SCRIPT) && (step_id != SLURM_INTERACTIVE_STEP);
}

extern void sk8_await_file(const char *folder, const char *file, int longest)
{
	const int64_t end = now_ms() + longest;
	int64_t left;

	while (access(file, F_OK) && !access(folder, F_OK) && ((left = end - now_ms()) > 0))
		wait_for_news(folder, file, (int) left);
}

extern void sk8_await_container(spank_t spank)
{
	char folder[PATH_MAX], file[PATH_MAX];

	/* that of the job comes last; what is missing is told by the tasks */
	if (is_for_container(spank) && container_file(spank, "", folder, file, sizeof(file)))
		sk8_await_file(folder, file, LONGEST_WAIT_MS);
}

extern void sk8_remember_folder(void)
{
	if (!getcwd(begins_in, sizeof(begins_in)) || (begins_in[0] != '/'))
		begins_in[0] = '\0';
}

extern ssize_t sk8_read_of_root(const char *path, char *text, size_t size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat status;
	ssize_t got = -1;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &status) && S_ISREG(status.st_mode) && !status.st_uid && !(status.st_mode & 022))
		got = read(fd, text, size);
	close(fd);
	return got;
}

/* The first line of such a file, without its end. */
static bool read_line(const char *path, char *line, size_t size)
{
	const ssize_t got = sk8_read_of_root(path, line, size - 1);

	if (got <= 0)
		return false;
	line[got] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return true;
}

/* Those that the task wants, and its variables if they are wanted. false: it has no process, or that ended just now */
static bool namespaces_of(spank_t spank, const char *cgroup_procs, struct sk8_namespaces *namespaces)
{
	const long pid = sk8_process_of(cgroup_procs, 0);
	bool all = pid && sk8_open_namespaces(pid, sk8_wish.network, sk8_wish.ipc, namespaces);

	if (all && sk8_wish.env)
		sk8_take_environment(spank, pid);
	if (all && has_account())
		sk8_take_api_server(spank, pid);
	/* was it the container's when they were opened, and not another process with that number? */
	all = all && (sk8_process_of(cgroup_procs, pid) == pid) && sk8_are_the_runtimes(namespaces);
	if (pid && !all)
		sk8_close_namespaces(namespaces);
	return all;
}

/* ---- inside ----------------------------------------------------------------------- */

/* A folder of the node that goes into the container; fd: -1 if none */
struct folder {
	char path[PATH_MAX];
	int fd;
};

static bool is_in(const char *path, const char *top)
{
	size_t length = strlen(top);

	while (length && (top[length - 1] == '/'))
		length--;

	return !strncmp(path, top, length) && (!path[length] || (path[length] == '/'));
}

/* false: a folder that its user wants cannot be had, an error has told why */
static bool open_folders(spank_t spank, struct folder *home, struct folder *cwd)
{
	if (!sk8_wish.mount_home)
		return true;
	if ((spank_getenv(spank, "HOME", home->path, sizeof(home->path)) == ESPANK_SUCCESS) && (home->path[0] == '/') &&
	    home->path[strspn(home->path, "/")] && ((home->fd = sk8_open_folder(spank, home->path)) < 0)) {
		slurm_error("slurm-k8s: --k8s-mount-home: %s: %s", home->path, strerror(errno));
		return false;
	}
	/* one that is not there Slurm tells of itself */
	if (cwd->path[0] && cwd->path[1] && ((home->fd < 0) || !is_in(cwd->path, home->path)))
		cwd->fd = sk8_open_folder(spank, cwd->path);
	return true;
}

/* What is in a folder that goes into the container need not be put there. */
static bool goes_with(const struct folder *which, const char *path)
{
	return (which->fd >= 0) && is_in(path, which->path);
}

static bool mount_folder(struct folder *which)
{
	if ((which->fd < 0) || sk8_mount_folder(which->fd, which->path))
		return true;
	slurm_error("slurm-k8s: --k8s-mount-home: %s cannot be mounted in the container: %s", which->path,
		    strerror(errno));
	return false;
}

static bool read_kubeconfig(const char *folder, struct sk8_kubeconfig *kubeconfig)
{
	char path[PATH_MAX];

	if ((snprintf(path, sizeof(path), "%s/" SK8_KUBECONFIG, folder) < (int) sizeof(path)) &&
	    sk8_read_kubeconfig(path, kubeconfig))
		return true;
	slurm_error("slurm-k8s: --k8s-service-account: the agent of this node has not told where the API server is; slurmd's log tells more");
	return false;
}

static bool go_inside(spank_t spank)
{
	char folder[PATH_MAX], file[PATH_MAX], procs[PATH_MAX];
	struct folder home = { .fd = -1 }, cwd = { .fd = -1 };
	struct sk8_namespaces namespaces;
	struct sk8_kubeconfig kubeconfig;
	struct sk8_xauthority xauthority;
	bool inside;
	int proc;

	if (!container_file(spank, "", folder, file, sizeof(file)) || !read_line(file, procs, sizeof(procs))) {
		slurm_error("slurm-k8s: the job has no container on this node: give --k8s-image to the sbatch, salloc or srun that makes the job; nodes have containers if slurm-k8s.yaml has sharing: mixed or dedicated for them, slurm.conf PrEpPlugins=prep/script,prep/k8s, and the agent runs in slurmd (spank_k8s.so(8))");
		return false;
	}
	if (is_another() && (!container_file(spank, sk8_wish.container, folder, file, sizeof(file)) || !read_line(file, procs, sizeof(procs)))) {
		slurm_error("slurm-k8s: no container %s of the job's pod runs on this node; --k8s-container names one of the job's template",
			    sk8_wish.container);
		return false;
	}
	strcpy(cwd.path, begins_in);
	if ((has_account() && !read_kubeconfig(folder, &kubeconfig)) || !open_folders(spank, &home, &cwd))
		return false;
	sk8_read_xauthority(spank, &xauthority);
	if (!namespaces_of(spank, procs, &namespaces)) {
		slurm_error("slurm-k8s: the job's container does not run any more; kubectl describe pod -l slurm-k8s.io/job tells why");
		return false;
	}
	proc = sk8_open_proc();
	inside = sk8_take_task_prologs(spank) && sk8_enter_namespaces(&namespaces);
	sk8_close_namespaces(&namespaces);
	if (!inside)
		return false;
	if (!sk8_mount_proc(proc)) {
		slurm_error("slurm-k8s: cannot mount /proc in the job's container: %s", strerror(errno));
		return false;
	}
	if (has_account() && !sk8_give_kubeconfig(spank, &kubeconfig))
		return false;
	if (!goes_with(&home, xauthority.path) && !goes_with(&cwd, xauthority.path))
		sk8_give_xauthority(spank, &xauthority);
	if (!mount_folder(&home) || !mount_folder(&cwd))
		return false;
	if (cwd.path[0])
		sk8_make_folder(cwd.path);
	return true;
}

extern void sk8_enter_container(spank_t spank)
{
	if (sk8_wish.unclear || (is_for_container(spank) && !go_inside(spank)))
		_exit(1);
}

extern void sk8_begin_task(spank_t spank)
{
	if (!is_for_container(spank))
		return;
	sk8_run_task_prologs(spank, begins_in);
	if (!sk8_wish.workdir[0])
		return;
	if (chdir(sk8_wish.workdir)) {
		slurm_error("slurm-k8s: --k8s-workdir: %s: %s", sk8_wish.workdir, strerror(errno));
		_exit(1);
	}
	(void) spank_setenv(spank, "PWD", sk8_wish.workdir, 1);
}
