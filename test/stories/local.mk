# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# Pods through Slurm and back, on kubesim and on a real Kubernetes; see conftest.py.
EXTRA_DIST += \
	test/stories/conftest.py \
	test/stories/test_cancel.py \
	test/stories/test_ends.py \
	test/stories/test_identity.py \
	test/stories/world.py
