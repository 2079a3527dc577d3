# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# Examples, and the script for a kubeconfig: nothing here is read from where it is installed.
dist_pkgdata_DATA = \
	etc/gres.conf \
	etc/kubernetes-rbac.yaml \
	etc/kubernetes-reservations.yaml \
	etc/kubernetes-reservations-namespace.yaml \
	etc/kubernetes-containers.yaml \
	etc/kubernetes-devices.yaml \
	etc/kubernetes-resubmit.yaml \
	etc/kubernetes-token.yaml \
	etc/slurm-k8s.alerts.yaml \
	etc/slurm-k8s.dashboard.json \
	etc/slurm-k8s-node.yaml \
	etc/slurm-k8s.yaml \
	script/common.sh
dist_pkgdata_SCRIPTS = script/make-kubeconfig
# what else README's "Connect your own cluster" calls
EXTRA_DIST += script/install-deps script/slurm-source
# how packages are made
EXTRA_DIST += debian rpm/slurm-k8s.spec script/make-packages
