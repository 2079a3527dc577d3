# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# The rules of doc/architecture.md that a script can check. (SK8_SRCDIR: test/abi/local.mk)
TESTS += test/layers/check
EXTRA_DIST += test/layers/check
