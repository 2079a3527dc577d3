dnl SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
dnl --enable-sanitize=address,undefined or =thread, --enable-coverage,
dnl --enable-werror
AC_DEFUN([SK8_SANITIZE], [
	SANITIZE_FLAGS= COVERAGE_FLAGS= WERROR= NO_UNDEFINED=-Wl,--no-undefined
	AC_ARG_ENABLE([sanitize],
		[AS_HELP_STRING([--enable-sanitize=LIST], [build with -fsanitize=LIST, for example address,undefined or thread])],
		[AS_IF([test "x$enableval" != xno], [
			AS_IF([test "x$enableval" = xyes], [enableval=address,undefined])
			NO_UNDEFINED= # the run-time library of the sanitizer is in the program
			SANITIZE_FLAGS="-fsanitize=$enableval -fno-sanitize-recover=all -fno-omit-frame-pointer"])])
	AC_ARG_ENABLE([coverage], [AS_HELP_STRING([--enable-coverage], [build with --coverage for gcov])],
		[AS_IF([test "x$enableval" = xyes], [COVERAGE_FLAGS=--coverage])])
	AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [make compiler warnings errors])],
		[AS_IF([test "x$enableval" = xyes], [WERROR=-Werror])])
	AC_SUBST([SANITIZE_FLAGS])
	AC_SUBST([NO_UNDEFINED])
	AC_SUBST([COVERAGE_FLAGS])
	AC_SUBST([WERROR])
])
