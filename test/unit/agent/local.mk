# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
if HAVE_CATCH2
check_PROGRAMS += test/unit/agent_test
TESTS += test/unit/agent_test
endif
test_unit_agent_test_SOURCES = \
	$(UNIT_MAIN) \
	test/unit/agent/agent_settings_test.cc \
	test/unit/agent/allocate_response_test.cc \
	test/unit/agent/answers.h \
	test/unit/agent/confinement_test.cc \
	test/unit/agent/cpu_manager_test.cc \
	test/unit/agent/cpus_test.cc \
	test/unit/agent/device_manager_test.cc \
	test/unit/agent/device_order_test.cc \
	test/unit/agent/gone_pods_test.cc \
	test/unit/agent/job_containers_test.cc \
	test/unit/agent/job_devices_test.cc \
	test/unit/agent/job_kubeconfig_test.cc \
	test/unit/agent/jobs.h \
	test/unit/agent/kubelet_files_test.cc \
	test/unit/agent/machine.h \
	test/unit/agent/numa_test.cc \
	test/unit/agent/pinning_test.cc \
	test/unit/agent/pod_cgroups_test.cc \
	test/unit/kube/temp_folder.h \
	test/unit/kube/virtual_clock.h
test_unit_agent_test_LDADD = lib/agent/libagent.la $(CATCH_LIBS) -lpthread
