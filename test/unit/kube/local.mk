# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
if HAVE_CATCH2
check_PROGRAMS += test/unit/kube_test
TESTS += test/unit/kube_test
endif
test_unit_kube_test_SOURCES = \
	$(UNIT_MAIN) \
	test/unit/kube/backoff_test.cc \
	test/unit/kube/client_test.cc \
	test/unit/kube/credentials_test.cc \
	test/unit/kube/http_loop_test.cc \
	test/unit/kube/https_server.cc \
	test/unit/kube/https_server.h \
	test/unit/kube/dra_objects_test.cc \
	test/unit/kube/fake_dns.cc \
	test/unit/kube/fake_dns.h \
	test/unit/kube/kubeconfig_test.cc \
	test/unit/kube/node_objects_test.cc \
	test/unit/kube/pod_objects_test.cc \
	test/unit/kube/recovery_test.cc \
	test/unit/kube/reflector_test.cc \
	test/unit/kube/request_queue_test.cc \
	test/unit/kube/requests_test.cc \
	test/unit/kube/rescue_test.cc \
	test/unit/kube/resize_test.cc \
	test/unit/kube/rig.h \
	test/unit/kube/secrets_test.cc \
	test/unit/kube/splitter_test.cc \
	test/unit/kube/store_test.cc \
	test/unit/kube/temp_folder.h \
	test/unit/kube/transport_test.cc \
	test/unit/kube/url_test.cc \
	test/unit/kube/virtual_clock.h \
	test/unit/kube/work_queue_test.cc
test_unit_kube_test_LDADD = lib/kube/libkube.la lib/base/libbase.la $(CATCH_LIBS) \
	$(MICROHTTPD_LIBS) -lpthread
test_unit_kube_test_CPPFLAGS = $(AM_CPPFLAGS) $(MICROHTTPD_CFLAGS)

# Drives lib/kube against any API server: test/kubernetes/kube_probe.cc says how.
check_PROGRAMS += test/kubernetes/kube_probe
test_kubernetes_kube_probe_SOURCES = test/kubernetes/kube_probe.cc
test_kubernetes_kube_probe_LDADD = lib/kube/libkube.la lib/base/libbase.la
