/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* environment.c - see there */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/sk8_container.h"
#include "plugins/spank/environment.h"

enum { LONGEST = 65536, MOST = 512 };

/* Of these the job's own count. */
static const char *const names[] = { "HOME", "USER", "LOGNAME", "SHELL", "PWD", "OLDPWD", "HOSTNAME", "TMPDIR", "TERM", "DISPLAY",
				     "XAUTHORITY", "SHLVL", "_" };
static const char *const beginnings[] = { "SLURM", "SPANK_", "KUBERNETES_", "PMI" };

static bool is_the_jobs(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
		if (!strncmp(name, beginnings[i], strlen(beginnings[i])))
			return true;
	return false;
}

static bool is_name(const char *text)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

	return text[0] && !strchr("0123456789", text[0]) && !text[strspn(text, letters)];
}

static bool is_the_containers(const char *name)
{
	return is_name(name) && !is_the_jobs(name);
}

static bool is_of_api_server(const char *name)
{
	return !strcmp(name, "KUBERNETES_SERVICE_HOST") || !strcmp(name, "KUBERNETES_SERVICE_PORT");
}

static void take(spank_t spank, char *variable, bool (*wanted)(const char *name))
{
	char *value = strchr(variable, '=');

	if (!value)
		return;
	*value++ = '\0';
	if (wanted(variable))
		(void) spank_setenv(spank, variable, value, 1);
}

static void take_all(spank_t spank, long pid, bool (*wanted)(const char *name))
{
	char path[64], *text = malloc(LONGEST + 1);
	size_t size = 0;
	ssize_t got = 0;
	int fd, count = 0;

	snprintf(path, sizeof(path), "/proc/%ld/environ", pid);
	if (text && ((fd = open(path, O_RDONLY | O_CLOEXEC)) >= 0)) {
		while ((size < LONGEST) && ((got = read(fd, text + size, LONGEST - size)) > 0))
			size += (size_t) got;
		close(fd);
		/* the last one may be cut off */
		while (size && text[size - 1])
			size--;
		for (char *at = text; (at < text + size) && (count < MOST); count++) {
			char *next = at + strlen(at) + 1;

			take(spank, at, wanted);
			at = next;
		}
	}
	free(text);
}

extern void sk8_take_environment(spank_t spank, long pid)
{
	take_all(spank, pid, is_the_containers);
}

extern void sk8_take_api_server(spank_t spank, long pid)
{
	take_all(spank, pid, is_of_api_server);
}

/* ---- of devices ------------------------------------------------------------------------ */

static const char given[] = "SLURM_K8S_DEVICE_VARIABLES";	/* "A,B" */
enum { LONGEST_LIST = 8192 };

/* SK8_DEVICES_VARIABLE is ours alone */
static bool is_of_device(const char *name)
{
	return is_the_containers(name) || !strcmp(name, SK8_DEVICES_VARIABLE);
}

static void give(spank_t spank, char *variable, char *list)
{
	char *value = strchr(variable, '=');
	const size_t length = strlen(list);

	if (!value)
		return;
	*value++ = '\0';
	if (!is_of_device(variable) || (length + strlen(variable) + 2 > LONGEST_LIST) ||
	    (spank_setenv(spank, variable, value, !strcmp(variable, SK8_DEVICES_VARIABLE)) != ESPANK_SUCCESS))
		return;	/* the user's own */
	snprintf(list + length, LONGEST_LIST - length, "%s%s", length ? "," : "", variable);
}

extern void sk8_give_variables(spank_t spank, char *text, size_t size)
{
	char list[LONGEST_LIST] = "";

	while (size && text[size - 1])
		size--;
	for (char *at = text; at < text + size;) {
		char *next = at + strlen(at) + 1;

		give(spank, at, list);
		at = next;
	}
	if (list[0])
		(void) spank_setenv(spank, given, list, 1);
}

extern void sk8_take_variables_back(spank_t spank)
{
	char list[LONGEST_LIST], *name, *rest = NULL;

	if (spank_getenv(spank, given, list, sizeof(list)) != ESPANK_SUCCESS)
		return;
	for (name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
		if (is_of_device(name))
			(void) spank_unsetenv(spank, name);
	(void) spank_unsetenv(spank, given);
}
