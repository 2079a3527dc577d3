# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Throw-away Slurm and Kubernetes in a folder: what test/cluster is made of."""
