# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#
# The engine. libcore is what tests link; libsk8core is the same with the C border,
# the one private library that all plugins of a process share.
noinst_LTLIBRARIES += lib/core/libcore.la
lib_core_libcore_la_LIBADD = lib/kube/libkube.la
lib_core_libcore_la_SOURCES = \
	lib/core/annotations.cc \
	lib/core/annotations.h \
	lib/core/cluster_engine.cc \
	lib/core/cluster_engine.h \
	lib/core/cluster_natives.cc \
	lib/core/cluster_numbers.h \
	lib/core/cluster_status.cc \
	lib/core/control.cc \
	lib/core/control.h \
	lib/core/control_server.cc \
	lib/core/control_server.h \
	lib/core/control_socket.cc \
	lib/core/control_socket.h \
	lib/core/device_exchange.cc \
	lib/core/device_exchange.h \
	lib/core/eviction.cc \
	lib/core/eviction.h \
	lib/core/eviction_link.h \
	lib/core/eviction_port.h \
	lib/core/exclusive_nodes.cc \
	lib/core/exclusive_nodes.h \
	lib/core/exclusive_report.cc \
	lib/core/exclusive_step.cc \
	lib/core/exclusive_step.h \
	lib/core/foreign_pod.cc \
	lib/core/foreign_pod.h \
	lib/core/foreign_pods.cc \
	lib/core/foreign_pods.h \
	lib/core/gate.cc \
	lib/core/gate.h \
	lib/core/gres.cc \
	lib/core/gres.h \
	lib/core/gres_identification.cc \
	lib/core/gres_identification.h \
	lib/core/hold.h \
	lib/core/hold_journal.cc \
	lib/core/hold_journal.h \
	lib/core/hold_table.cc \
	lib/core/hold_table.h \
	lib/core/identity.cc \
	lib/core/identity.h \
	lib/core/indices.cc \
	lib/core/indices.h \
	lib/core/job.cc \
	lib/core/job_container.cc \
	lib/core/job_container.h \
	lib/core/job.h \
	lib/core/job_request.cc \
	lib/core/job_request.h \
	lib/core/kube_link.cc \
	lib/core/kube_link.h \
	lib/core/kube_port.h \
	lib/core/ledger_file.cc \
	lib/core/ledger_file.h \
	lib/core/lifecycle.cc \
	lib/core/lifecycle.h \
	lib/core/link_state.cc \
	lib/core/link_state.h \
	lib/core/lost_pods.cc \
	lib/core/lost_pods.h \
	lib/core/mask_index.cc \
	lib/core/mask_index.h \
	lib/core/metrics.cc \
	lib/core/metrics.h \
	lib/core/metrics_server.cc \
	lib/core/metrics_server.h \
	lib/core/metrics_table.cc \
	lib/core/metrics_table.h \
	lib/core/names.h \
	lib/core/native_job.h \
	lib/core/node_features.cc \
	lib/core/node_features.h \
	lib/core/node_kube_port.h \
	lib/core/node_link.cc \
	lib/core/node_link.h \
	lib/core/node_state.cc \
	lib/core/node_state.h \
	lib/core/node_taint.cc \
	lib/core/node_taint.h \
	lib/core/node_use.cc \
	lib/core/node_use.h \
	lib/core/node_view.cc \
	lib/core/node_view.h \
	lib/core/nodes_controller.cc \
	lib/core/nodes_overcommits.cc \
	lib/core/overcommit.cc \
	lib/core/overcommit.h \
	lib/core/nodes_controller.h \
	lib/core/nodes_status.cc \
	lib/core/pinned_cores.cc \
	lib/core/pinned_cores.h \
	lib/core/placement.cc \
	lib/core/placement.h \
	lib/core/pod_devices.cc \
	lib/core/pod_devices.h \
	lib/core/pod_end.cc \
	lib/core/pod_end.h \
	lib/core/pod_key.cc \
	lib/core/pod_key.h \
	lib/core/pod_log.cc \
	lib/core/pod_log.h \
	lib/core/pod_reports.cc \
	lib/core/pod_reports.h \
	lib/core/pod_template.cc \
	lib/core/pod_template.h \
	lib/core/pods_adoption.cc \
	lib/core/pods_binding.cc \
	lib/core/pods_devices.cc \
	lib/core/pods_controller.cc \
	lib/core/pods_controller.h \
	lib/core/pods_effects.cc \
	lib/core/pods_ends.cc \
	lib/core/pods_news.cc \
	lib/core/pods_release.cc \
	lib/core/pods_resubmit.cc \
	lib/core/pods_status.cc \
	lib/core/pods_status.h \
	lib/core/pods_then.h \
	lib/core/reservation.cc \
	lib/core/reservation.h \
	lib/core/reservation_link.h \
	lib/core/reservation_log.h \
	lib/core/reservation_port.h \
	lib/core/reservations.cc \
	lib/core/reservations.h \
	lib/core/reservations_devices.cc \
	lib/core/reservations_exchange.cc \
	lib/core/reservations_eviction.cc \
	lib/core/reservations_former.cc \
	lib/core/reservations_gate.cc \
	lib/core/reservations_shared.cc \
	lib/core/resubmit.cc \
	lib/core/resubmit.h \
	lib/core/resubmits.cc \
	lib/core/resubmits.h \
	lib/core/rights.h \
	lib/core/runtime.cc \
	lib/core/runtime.h \
	lib/core/runtime_natives.cc \
	lib/core/service_account.cc \
	lib/core/service_account.h \
	lib/core/settings.cc \
	lib/core/settings.h \
	lib/core/shared_nodes.cc \
	lib/core/shared_nodes.h \
	lib/core/shared_reservation.cc \
	lib/core/shared_reservation.h \
	lib/core/shared_reservations.cc \
	lib/core/shared_reservations.h \
	lib/core/shared_reservations_steps.cc \
	lib/core/shared_reservations_view.cc \
	lib/core/slurm_commands.cc \
	lib/core/slurm_lock.h \
	lib/core/slurm_natives.cc \
	lib/core/slurm_node.h \
	lib/core/slurm_nodes.cc \
	lib/core/slurm_port.h \
	lib/core/slurm_worker.cc \
	lib/core/slurm_worker.h \
	lib/core/timer_port.h

pkglib_LTLIBRARIES += lib/core/libsk8core.la
lib_core_libsk8core_la_SOURCES = lib/core/abi.cc lib/agent/abi.cc lib/sk8_abi.h lib/sk8_container.h
lib_core_libsk8core_la_LIBADD = lib/agent/libagent.la
# A version script, not libtool's -export-symbols: that leaves templates of libstdc++ visible.
# -z now: nothing in it waits for slurmctld's symbols, so all of it can be read-only.
lib_core_libsk8core_la_LDFLAGS = $(AM_LDFLAGS) -Wl,-z,relro,-z,now -version-info 0:0:0 $(NO_UNDEFINED) \
	-Wl,--version-script=$(srcdir)/lib/core/libsk8core.map
lib_core_libsk8core_la_DEPENDENCIES = lib/agent/libagent.la lib/core/libsk8core.map
EXTRA_DIST += lib/core/libsk8core.map
