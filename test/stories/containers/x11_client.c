/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * x11_client.c - connects to DISPLAY as every program of X11 does, by its own library, and says what came of it. What it needs of
 * that it declares itself: xauth brings the library, and no headers.
 */
#include <stddef.h>
#include <stdio.h>

struct xcb_connection_t;
extern struct xcb_connection_t *xcb_connect(const char *display, int *screen);
extern int xcb_connection_has_error(struct xcb_connection_t *connection);

int main(void)
{
	const int error = xcb_connection_has_error(xcb_connect(NULL, NULL));

	puts(error ? "refused" : "connected");
	return error != 0;
}
