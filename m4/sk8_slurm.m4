dnl SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
AC_DEFUN([SK8_SLURM], [
	slurmplugindir='${pkglibdir}/plugins'
	AC_SUBST([slurmplugindir])
])
