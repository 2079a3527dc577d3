# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# Examples: nothing here is read from where it is installed.
dist_pkgdata_DATA = \
	etc/kubernetes-rbac.yaml \
	etc/kubernetes-token.yaml \
	etc/slurm-k8s.alerts.yaml \
	etc/slurm-k8s.dashboard.json \
	etc/slurm-k8s.yaml
# what README's "Connect your own cluster" calls
EXTRA_DIST += script/common.sh script/install-deps script/make-kubeconfig script/slurm-source
