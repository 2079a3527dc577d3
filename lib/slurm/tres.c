/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
#include "lib/slurm/tres.h"
#include <stdio.h>
#include <string.h>

bool sk8_tres_text(char *to, size_t size, const char *prefix, const char *tres)
{
	size_t used = 0;

	if (!size)
		return false;
	to[0] = '\0';
	while (*tres) {
		size_t len = strcspn(tres, ",");
		const char *name = tres;
		int n;

		tres += len + (tres[len] == ',');
		if (!strncmp(name, "gres:", 5) || !strncmp(name, "gres/", 5)) {
			name += 5;
			len -= 5;
		}
		if (!len)
			continue;
		n = snprintf(to + used, size - used, "%s%s%.*s",
			     used ? "," : "", prefix, (int) len, name);
		if ((n < 0) || ((size_t) n >= size - used))
			return false;
		used += n;
	}
	return true;
}
