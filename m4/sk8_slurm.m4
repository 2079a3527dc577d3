dnl SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
dnl
dnl Slurm's plugins are loaded by one exact version only, and internal structs
dnl change even in micro releases: so the version, its public headers and the
dnl source tree with the internal headers must all agree.
dnl
dnl The versions that were tried. doc/architecture.md says what else a new one
dnl needs ("Support another release").
m4_define([sk8_slurm_known], [m4_join([ ],
	[22.05.8], [24.11.5], [26.05.3])])

AC_DEFUN([SK8_SLURM], [
AC_ARG_WITH([slurm],
	[AS_HELP_STRING([--with-slurm=PATH], [prefix of the installed Slurm @<:@/usr@:>@; --without-slurm builds the libraries and their tests only])],
	[], [with_slurm=yes])
AC_ARG_WITH([slurm-source],
	[AS_HELP_STRING([--with-slurm-source=DIR], [source tree of that Slurm, for its internal headers; it needs not be configured])],
	[], [with_slurm_source=])
AC_ARG_WITH([slurm-plugindir],
	[AS_HELP_STRING([--with-slurm-plugindir=DIR], [where our Slurm plugins go; put it before the stock directory in PluginDir @<:@PKGLIBDIR/plugins@:>@])],
	[slurmplugindir=$withval], [slurmplugindir='${pkglibdir}/plugins'])
AC_ARG_WITH([slurm-stock-plugindir],
	[AS_HELP_STRING([--with-slurm-stock-plugindir=DIR], [where Slurm's own plugins are; only tests need it @<:@searched@:>@])],
	[slurmstockdir=$withval], [slurmstockdir=])
AC_ARG_ENABLE([untested-slurm],
	[AS_HELP_STRING([--enable-untested-slurm], [build for a Slurm version that was never tried])],
	[], [enable_untested_slurm=no])
AC_SUBST([slurmplugindir])
SLURM_CPPFLAGS= SLURM_VERSION= SLURM_SOURCE=
AS_IF([test "x$with_slurm" != xno], [_SK8_SLURM_FIND])
AC_SUBST([SLURM_CPPFLAGS])
AC_SUBST([SLURM_VERSION])
AC_SUBST([SLURM_SOURCE])
AC_SUBST([slurmstockdir])
AM_CONDITIONAL([HAVE_SLURM], [test "x$with_slurm" != xno])
])

AC_DEFUN([_SK8_SLURM_FIND], [
	AC_REQUIRE([AC_PROG_SED])
	AS_CASE([$with_slurm], [yes], [sk8_slurm_prefix=/usr sk8_slurm_include=],
		[sk8_slurm_prefix=$with_slurm sk8_slurm_include="-I$with_slurm/include"])
	AC_MSG_CHECKING([for Slurm's public headers])
	sk8_save_CPPFLAGS=$CPPFLAGS
	CPPFLAGS="$CPPFLAGS $sk8_slurm_include"
	sk8_slurm_number=
	AS_IF([test -z "$sk8_slurm_include" || test -f "$sk8_slurm_prefix/include/slurm/slurm_version.h"],
		[AC_COMPUTE_INT([sk8_slurm_number], [SLURM_VERSION_NUMBER],
		[@%:@include <slurm/slurm.h>
@%:@include <slurm/slurm_version.h>], [sk8_slurm_number=])])
	CPPFLAGS=$sk8_save_CPPFLAGS
	AS_IF([test -n "$sk8_slurm_number"], [
		SLURM_VERSION=`printf '%d.%02d.%d' $(($sk8_slurm_number >> 16)) $(($sk8_slurm_number >> 8 & 255)) $(($sk8_slurm_number & 255))`
		AC_MSG_RESULT([$SLURM_VERSION])
		AC_DEFINE_UNQUOTED([SK8_SLURM_VERSION], ["$SLURM_VERSION"], [The Slurm version that the plugins are built for])
	], [
		AC_MSG_RESULT([no])
		sk8_missing="$sk8_missing
  slurm/slurm.h, slurm/slurm_version.h: Debian package libslurm-dev, RPM package slurm-devel (or name another prefix by --with-slurm=PATH)"
	])

	AC_MSG_CHECKING([for Slurm's source tree])
	AS_IF([test -z "$with_slurm_source" || test "x$with_slurm_source" = xyes], [
		AC_MSG_RESULT([not given])
		sk8_missing="$sk8_missing
  Slurm's internal headers: unpack the source of Slurm $SLURM_VERSION and name it by --with-slurm-source=DIR (Debian: apt-get source slurm-wlm, RPM: dnf download --source slurm)"
	], [test ! -f "$with_slurm_source/META" || test ! -f "$with_slurm_source/src/slurmctld/slurmctld.h"], [
		AC_MSG_RESULT([no])
		sk8_missing="$sk8_missing
  Slurm's internal headers: $with_slurm_source is not the top of a Slurm source tree (META, src/slurmctld/slurmctld.h)"
	], [
		SLURM_SOURCE=`cd "$with_slurm_source" && pwd`
		sk8_source_version=`$SED -n 's/^@<:@ 	@:>@*Version:@<:@ 	@:>@*\(@<:@0-9.@:>@*\).*/\1/p' "$SLURM_SOURCE/META"`
		AC_MSG_RESULT([$SLURM_SOURCE ($sk8_source_version)])
		AS_IF([test -n "$SLURM_VERSION" && test "$sk8_source_version" != "$SLURM_VERSION"], [
			sk8_missing="$sk8_missing
  Slurm's internal headers: $with_slurm_source is version $sk8_source_version, the installed headers are $SLURM_VERSION; the two must be the same"])
		# Our config.h before any of the tree's own: the layout of structs
		# does not depend on it, the symbols that the objects want do.
		SLURM_CPPFLAGS="-I\$(top_builddir)/slurm-config $sk8_slurm_include -isystem $SLURM_SOURCE"
	])

	AS_IF([test -n "$SLURM_VERSION"], [
		AC_MSG_CHECKING([whether Slurm $SLURM_VERSION was tried])
		AS_CASE([" sk8_slurm_known "],
			[*" $SLURM_VERSION "*], [AC_MSG_RESULT([yes])],
			[AC_MSG_RESULT([no])
			AS_IF([test "x$enable_untested_slurm" = xyes],
				[AC_MSG_WARN([building for Slurm $SLURM_VERSION, which was never tried; known: sk8_slurm_known])],
				[sk8_missing="$sk8_missing
  a known Slurm: $SLURM_VERSION was never tried (known: sk8_slurm_known); --enable-untested-slurm builds for it all the same"])])
	])

	AC_MSG_CHECKING([for Slurm's own plugins])
	AS_IF([test -z "$slurmstockdir"], [
		sk8_multiarch=`$CC -print-multiarch 2>/dev/null`
		for sk8_dir in "$sk8_slurm_prefix/lib/$sk8_multiarch/slurm-wlm" "$sk8_slurm_prefix/lib/$sk8_multiarch/slurm" \
			"$sk8_slurm_prefix/lib64/slurm" "$sk8_slurm_prefix/lib/slurm"; do
			AS_IF([test -f "$sk8_dir/select_cons_tres.so"], [slurmstockdir=$sk8_dir; break])
		done
	])
	AS_IF([test -n "$slurmstockdir"], [AC_MSG_RESULT([$slurmstockdir])], [
		AC_MSG_RESULT([no])
		AC_MSG_WARN([select_cons_tres.so was not found (Debian package slurm-wlm-basic-plugins, RPM package slurm): tests that need it are skipped; --with-slurm-stock-plugindir=DIR names its directory])
	])

	# NDEBUG: else verify_lock and xassert want symbols that slurmctld lacks.
	# USE_ALIAS: lets slurm_xlator.h rename functions to slurm_*.
	AC_CONFIG_COMMANDS([slurm-config/config.h], [
		AS_MKDIR_P([slurm-config])
		printf '#define NDEBUG 1\n#define USE_ALIAS 1\n' > slurm-config/config.h.new
		AS_IF([cmp -s slurm-config/config.h.new slurm-config/config.h],
			[rm -f slurm-config/config.h.new],
			[mv -f slurm-config/config.h.new slurm-config/config.h])
	])
])

dnl Everything that SK8_LIBRARIES and SK8_SLURM found missing, in one message.
AC_DEFUN([SK8_REPORT_MISSING], [
	AS_IF([test -n "$sk8_missing"], [AC_MSG_ERROR([missing:$sk8_missing
Install or name them and run configure again.])])
])
