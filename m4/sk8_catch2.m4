dnl SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
dnl Catch2 v3 (a library) or v2 (one header); tests use the common subset
dnl through test/unit/catch.h. Without it only `make check` is missing.
AC_DEFUN([SK8_CATCH2], [
	AC_LANG_PUSH([C++])
	sk8_catch2=no
	AC_CHECK_HEADER([catch2/catch_test_macros.hpp], [sk8_catch2=3],
		[AC_CHECK_HEADER([catch2/catch.hpp], [sk8_catch2=2])])
	AC_LANG_POP([C++])
	CATCH_LIBS=
	AS_CASE([$sk8_catch2],
		[3], [CATCH_LIBS="-lCatch2Main -lCatch2"],
		[no], [AC_MSG_WARN([Catch2 is missing (Debian package catch2, RPM package catch-devel): make check cannot run])])
	AC_SUBST([CATCH_LIBS])
	AM_CONDITIONAL([HAVE_CATCH2], [test "$sk8_catch2" != no])
])
