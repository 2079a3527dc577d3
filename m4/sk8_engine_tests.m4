dnl SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
dnl --disable-engine-tests: test/sim, test/fuzz, test/engine and the tests of lib/core know no Slurm. Who builds for several releases of it needs
dnl them once, and they are as much to compile as all that is installed.
AC_DEFUN([SK8_ENGINE_TESTS], [
	AC_ARG_ENABLE([engine-tests],
		[AS_HELP_STRING([--disable-engine-tests], [build no test/sim, test/fuzz, test/engine and test/unit/core, which know no Slurm])])
	AM_CONDITIONAL([ENGINE_TESTS], [test "x$enable_engine_tests" != xno])
])
