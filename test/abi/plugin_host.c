/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * plugin_host.c - loads a plugin as a program of Slurm does (plugin_load_from_file() in
 * src/common/plugin.c): lazily, libslurmfull is there, slurmctld's own symbols are not.
 * So the select plugin goes through, as slurmctld, what it does if our module cannot be
 * loaded: Slurm starts all the same. A SPANK plugin has no init(); what it calls later must
 * be there in each of these programs.
 *
 *   plugin_host PROGRAM STOCK-DIRECTORY PLUGIN SYMBOLS
 *
 * 0: it loaded, has each symbol that Slurm asks it for, its init() was content, and it
 * brought nothing into a program that needs nothing of it.
 */
#include "lib/slurm/release.h"
#include <sys/wait.h>
#include <unistd.h>
#include <dlfcn.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int bad;

static void complain(const char *what, const char *of)
{
	fprintf(stderr, "%s: %s\n", of, what);
	bad = 1;
}

static void *open_or_exit(const char *path, int flags, int rc)
{
	void *handle = dlopen(path, flags);

	if (!handle) {
		fprintf(stderr, "%s\n", dlerror());
		exit(rc);
	}
	return handle;
}

static void *need(void *handle, const char *name)
{
	void *p = dlsym(handle, name);

	if (!p) {
		fprintf(stderr, "%s: %s\n", name, dlerror());
		exit(1);
	}
	return p;
}

static bool is_spank(void *plugin)
{
	return !strcmp((const char *) need(plugin, "plugin_type"), "spank");
}

/* "select/cons_tres" in select_cons_tres.so. SPANK plugins may have any name. */
static void check_identity(void *plugin, const char *path)
{
	char *type = strdup((const char *) need(plugin, "plugin_type"));
	char *copy = strdup(path), *file = basename(copy), *slash = strchr(type, '/');

	(void) need(plugin, "plugin_name");
	if (slash)
		*slash = '_';
	if (!is_spank(plugin) &&
	    (!slash || strncmp(type, file, strlen(type)) || strcmp(file + strlen(type), ".so")))
		complain("plugin_type is not the file's name", path);
	if (*(const uint32_t *) need(plugin, "plugin_version") != SLURM_VERSION_NUMBER)
		complain("wrong plugin_version", path);
	if (!strncmp(type, "select", 6) && (*(const uint32_t *) need(plugin, "plugin_id") != 109))
		complain("wrong plugin_id", path);
	free(type);
	free(copy);
}

static void check_symbols(void *plugin, const char *list)
{
	FILE *file = fopen(list, "re");
	char name[256];
	int count = 0;

	while (file && (fscanf(file, "%255s", name) == 1)) {
		(void) need(plugin, name);
		count++;
	}
	if (!count)
		complain("no symbol in it", list);
	if (file)
		fclose(file);
}

/* a forwarded call that clients make, and what it made goes back the same way */
static void check_forwarding(void *plugin)
{
#ifdef SK8_CLIENTS_SELECT
	void *info = ((void *(*)(void)) need(plugin, "select_p_select_nodeinfo_alloc"))();

	if (!info || ((int (*)(void *)) need(plugin, "select_p_select_nodeinfo_free"))(info))
		complain("nodeinfo_alloc or nodeinfo_free was not forwarded", "select");
#else
	(void) plugin;
#endif
}

/* Slurm would find out when it calls them: all functions that it refers to. In a process of its own: what is loaded stays as it is. */
static void check_calls(const char *path)
{
	int status = 1;
	pid_t child = fork();

	if (!child) {
		(void) open_or_exit(path, RTLD_NOW | RTLD_LOCAL, 1);
		_exit(0);
	}
	if ((child < 0) || (waitpid(child, &status, 0) < 0) || status)
		complain("refers to what this program does not have", path);
}

static bool mapped(const char *what)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096];
	bool found = false;

	while (maps && fgets(line, sizeof(line), maps))
		found = found || strstr(line, what);
	if (maps)
		fclose(maps);
	return found;
}

/* The engine and its libraries must not come into a program that has no use for them. */
static void check_strangers(void)
{
	static const char *const strangers[] = { "sk8_slurmctld", "sk8_slurmd", "libsk8core", "libcurl", "libstdc++" };

	for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++)
		if (mapped(strangers[i]))
			complain("was loaded", strangers[i]);
}

/* For running_in_slurmctld() and its like: they ask the program's name, or since 26.05 a bit (run_in_daemon.h). */
static void run_as(void *full, char *program)
{
	static const struct {
		const char *program;
		int bit;
	} daemons[] = { { "slurmctld", 3 }, { "slurmd", 4 }, { "slurmstepd", 5 } };
	char **name = dlsym(full, "slurm_prog_name");

	if (name) {
		*name = program;
		return;
	}
	for (size_t k = 0; k < sizeof(daemons) / sizeof(*daemons); k++)
		if (!strcmp(daemons[k].program, program))
			*(uint32_t *) need(full, "slurm_daemon") = (uint32_t) 1 << daemons[k].bit;
}

int main(int argc, char **argv)
{
	char full_path[4096];
	void *full, *plugin;

	if (argc != 5)
		return 2;
	snprintf(full_path, sizeof(full_path), "%s/libslurmfull.so", argv[2]);
	full = open_or_exit(full_path, RTLD_NOW | RTLD_GLOBAL, 77);
	run_as(full, argv[1]);
	((slurm_conf_t *) need(full, "slurm_conf"))->plugindir = argv[2];
	if (strstr(argv[3], "/spank_"))
		check_calls(argv[3]);
	plugin = open_or_exit(argv[3], RTLD_LAZY | RTLD_LOCAL, 1);
	check_identity(plugin, argv[3]);
	check_symbols(plugin, argv[4]);
	if (!is_spank(plugin) && ((int (*)(void)) need(plugin, "init"))()) {
		complain("init() failed", argv[3]);
		return 1;
	}
	if (strstr(argv[3], "/select_"))
		check_forwarding(plugin);
	if (strcmp(argv[1], "slurmctld"))
		check_strangers();
	return bad;
}
