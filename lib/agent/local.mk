# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#
# The agent on compute nodes. libagent is what tests link; it is a part of libsk8core.
noinst_LTLIBRARIES += lib/agent/libagent.la
lib_agent_libagent_la_LIBADD = lib/core/libcore.la
lib_agent_libagent_la_SOURCES = \
	lib/agent/agent.cc \
	lib/agent/agent.h \
	lib/agent/allocate_response.cc \
	lib/agent/allocate_response.h \
	lib/agent/confinement.cc \
	lib/agent/confinement.h \
	lib/agent/cpu_manager.cc \
	lib/agent/cpu_manager.h \
	lib/agent/cpus.cc \
	lib/agent/cpus.h \
	lib/agent/device_manager.cc \
	lib/agent/device_manager.h \
	lib/agent/device_order.cc \
	lib/agent/device_order.h \
	lib/agent/exclusive_cpus.cc \
	lib/agent/exclusive_cpus.h \
	lib/agent/gone_pods.cc \
	lib/agent/gone_pods.h \
	lib/agent/job_containers.cc \
	lib/agent/job_containers.h \
	lib/agent/job_devices.cc \
	lib/agent/job_devices.h \
	lib/agent/job_kubeconfig.cc \
	lib/agent/job_kubeconfig.h \
	lib/agent/kubelet_files.cc \
	lib/agent/kubelet_files.h \
	lib/agent/node_report.cc \
	lib/agent/node_report.h \
	lib/agent/numa.cc \
	lib/agent/numa.h \
	lib/agent/pinning.cc \
	lib/agent/pinning.h \
	lib/agent/pod_cgroups.cc \
	lib/agent/pod_cgroups.h \
	lib/agent/run_folder.cc \
	lib/agent/run_folder.h \
	lib/agent/settings.cc \
	lib/agent/settings.h \
	lib/agent/slurm_jobs.h
