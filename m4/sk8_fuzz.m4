dnl SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
dnl --enable-fuzz: build the targets of test/fuzz for libFuzzer instead of for replay.
dnl Only test/fuzz/run wants it, in a build of its own; nothing else needs clang.
AC_DEFUN([SK8_FUZZ], [
	AC_ARG_ENABLE([fuzz],
		[AS_HELP_STRING([--enable-fuzz], [build test/fuzz for libFuzzer (clang)])])
	AS_IF([test "x$enable_fuzz" = xyes], [
		AC_LANG_PUSH([C++])
		sk8_save_CXXFLAGS=$CXXFLAGS
		CXXFLAGS="$CXXFLAGS -fsanitize=fuzzer"
		AC_MSG_CHECKING([whether $CXX has libFuzzer])
		AC_LINK_IFELSE([AC_LANG_SOURCE([[
			#include <cstdint>
			#include <cstddef>
			extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *, std::size_t) { return 0; }]])],
			[AC_MSG_RESULT([yes])],
			[AC_MSG_RESULT([no])
			AC_MSG_ERROR([--enable-fuzz needs clang with libFuzzer: CC=clang-16 CXX=clang++-16, Debian packages clang-16 and libclang-rt-16-dev])])
		CXXFLAGS=$sk8_save_CXXFLAGS
		AC_LANG_POP([C++])
		# every function counts what it runs
		SANITIZE_FLAGS="$SANITIZE_FLAGS -fsanitize=fuzzer-no-link"
		NO_UNDEFINED=
		FUZZ_ENGINE=-fsanitize=fuzzer # brings main()
	])
	AC_SUBST([FUZZ_ENGINE])
	# clang has neither the option nor what it is against
	AX_CHECK_COMPILE_FLAG([-fno-gnu-unique], [NO_GNU_UNIQUE=-fno-gnu-unique], [NO_GNU_UNIQUE=], [-Werror])
	AC_SUBST([NO_GNU_UNIQUE])
	AM_CONDITIONAL([FUZZ], [test "x$enable_fuzz" = xyes])
])
