dnl SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
dnl SK8_NEED(PREFIX, PKGCONFIG-MODULE, DEBIAN-PACKAGE, RPM-PACKAGE)
dnl A missing library is named with the package that has it; all that is
dnl missing is listed in one message at the end (SK8_REPORT_MISSING), not one
dnl per run.
AC_DEFUN([SK8_NEED], [
	PKG_CHECK_MODULES([$1], [$2], [], [sk8_missing="$sk8_missing
  $2: Debian package $3, RPM package $4"])
])
AC_DEFUN([SK8_LIBRARIES], [
	sk8_missing=
	SK8_NEED([CURL], [libcurl >= 7.77], [libcurl4-openssl-dev], [libcurl-devel])
	SK8_NEED([JANSSON], [jansson >= 2.14], [libjansson-dev], [jansson-devel])
	SK8_NEED([YAML], [yaml-0.1 >= 0.2], [libyaml-dev], [libyaml-devel])
	SK8_NEED([MICROHTTPD], [libmicrohttpd >= 0.9.71], [libmicrohttpd-dev], [libmicrohttpd-devel])
	SK8_NEED([GNUTLS], [gnutls >= 3.6], [libgnutls28-dev], [gnutls-devel])
])
