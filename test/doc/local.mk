# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# Do the manual pages name everything that the code has? Runs in the build folder.
TESTS += test/doc/check test/doc/check-command
EXTRA_DIST += test/doc/check test/doc/check-command
