/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * client_host.c - loads the select plugin as a client does: libslurmfull is there,
 * slurmctld's symbols are not.
 *
 *   client_host LIBSLURMFULL PLUGIN STOCK-DIRECTORY
 *
 * 0: it loaded, forwards to the stock plugin, and brought nothing else along.
 */
#include "lib/slurm/release.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *need(void *handle, const char *name)
{
	void *p = dlsym(handle, name);

	if (!p) {
		fprintf(stderr, "%s: %s\n", name, dlerror());
		exit(1);
	}
	return p;
}

/* The engine and its libraries must not come into a client. */
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

int main(int argc, char **argv)
{
	static const char *const strangers[] = { "sk8_slurmctld", "libsk8core", "libcurl", "libstdc++" };
	slurm_conf_t *conf;
	void *full, *plugin;
	int bad = 0;

	if (argc != 4)
		return 2;
	if (!(full = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL))) {
		fprintf(stderr, "%s\n", dlerror());
		return 77;
	}
	if (!(plugin = dlopen(argv[2], RTLD_LAZY | RTLD_LOCAL))) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	conf = need(full, "slurm_conf");
	conf->plugindir = argv[3];
	if (strcmp(need(plugin, "plugin_type"), "select/cons_tres") ||
	    (*(const uint32_t *) need(plugin, "plugin_version") != SLURM_VERSION_NUMBER) ||
	    (*(const uint32_t *) need(plugin, "plugin_id") != 109)) {
		fprintf(stderr, "wrong plugin_type, plugin_version or plugin_id\n");
		bad = 1;
	}
	if (((int (*)(void)) need(plugin, "init"))()) {
		fprintf(stderr, "init() failed\n");
		return 1;
	}
#ifdef SK8_CLIENTS_SELECT
	/* a forwarded call that clients make, and what it made goes back the same way */
	void *info = ((void *(*)(void)) need(plugin, "select_p_select_nodeinfo_alloc"))();

	if (!info || ((int (*)(void *)) need(plugin, "select_p_select_nodeinfo_free"))(info)) {
		fprintf(stderr, "nodeinfo_alloc or nodeinfo_free was not forwarded\n");
		bad = 1;
	}
#endif
	for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++)
		if (mapped(strangers[i])) {
			fprintf(stderr, "%s was loaded into a client\n", strangers[i]);
			bad = 1;
		}
	return bad;
}
