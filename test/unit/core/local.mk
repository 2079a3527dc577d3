# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# lib/core knows no Slurm, and no library of the system either: one build of its tests will do
#   make interleavings                 two administrators of a node, in every order and with every delay; ten minutes
.PHONY: interleavings
interleavings: test/unit/core_test$(EXEEXT)
	test/unit/core_test "[.interleavings]" 2> /dev/null

if HAVE_CATCH2
if ENGINE_TESTS
check_PROGRAMS += test/unit/core_test
TESTS += test/unit/core_test
else
EXTRA_PROGRAMS += test/unit/core_test
endif
endif
test_unit_core_test_SOURCES = \
	$(UNIT_MAIN) \
	test/unit/core/control_server_test.cc \
	test/unit/core/control_test.cc \
	test/unit/core/device_exchange_test.cc \
	test/unit/core/deleted_nodes_test.cc \
	test/unit/core/device_reservations_test.cc \
	test/unit/core/dra_claims_test.cc \
	test/unit/core/dra_inventory_test.cc \
	test/unit/core/dra_selector_test.cc \
	test/unit/core/engine_start_test.cc \
	test/unit/core/eviction_test.cc \
	test/unit/core/exclusive_nodes_test.cc \
	test/unit/core/foreign_pods_test.cc \
	test/unit/core/gres_identification_test.cc \
	test/unit/core/gres_test.cc \
	test/unit/core/hold_table_test.cc \
	test/unit/core/hostile_test.cc \
	test/unit/core/job_claims_test.cc \
	test/unit/core/job_container_test.cc \
	test/unit/core/ledger_file_test.cc \
	test/unit/core/lifecycle_test.cc \
	test/unit/core/link_state_test.cc \
	test/unit/core/lost_pods_test.cc \
	test/unit/core/metrics_server_test.cc \
	test/unit/core/metrics_table_test.cc \
	test/unit/core/node_features_test.cc \
	test/unit/core/node_state_test.cc \
	test/unit/core/node_use_test.cc \
	test/unit/core/log_lines.h \
	test/unit/core/node_world.h \
	test/unit/core/nodes_controller_test.cc \
	test/unit/core/numa_cores_test.cc \
	test/unit/core/overcommit_test.cc \
	test/unit/core/pod_devices_test.cc \
	test/unit/core/pod_reports_test.cc \
	test/unit/core/pod_template_test.cc \
	test/unit/core/pods_claims_test.cc \
	test/unit/core/pods_controller_test.cc \
	test/unit/core/pods_devices_test.cc \
	test/unit/core/pods_resize_test.cc \
	test/unit/core/recovery_test.cc \
	test/unit/core/refusals_test.cc \
	test/unit/core/preemption_test.cc \
	test/unit/core/release_test.cc \
	test/unit/core/request_test.cc \
	test/unit/core/reservation_world.h \
	test/unit/core/reservations_test.cc \
	test/unit/core/resubmit_test.cc \
	test/unit/core/rights_test.cc \
	test/unit/core/runtime_test.cc \
	test/unit/core/saved_nodes_test.cc \
	test/unit/core/service_account_test.cc \
	test/unit/core/settings_in_force_test.cc \
	test/unit/core/settings_test.cc \
	test/unit/core/shared_nodes_test.cc \
	test/unit/core/shared_reservations_test.cc \
	test/unit/core/slurm_worker_test.cc \
	test/unit/core/world.cc \
	test/merge_patch.h \
	test/unit/core/world.h \
	test/unit/kube/temp_folder.h
# Who reads files of the source tree is told where that is. clang takes nothing precompiled with a macro more (test/pch).
TREE_READERS = test/unit/core/rights_test.$(OBJEXT) test/unit/core/settings_test.$(OBJEXT)
$(TREE_READERS): private CXXFLAGS += -DTOP_SRCDIR='"$(abs_top_srcdir)"'
$(TREE_READERS): private override SANITIZED_PCH =
$(TREE_READERS): private TEST_PCH =
test_unit_core_test_LDADD = lib/core/libcore.la $(CATCH_LIBS)
