# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
noinst_PROGRAMS += test/kubesim/kubesim
test_kubesim_kubesim_SOURCES = \
	test/kubesim/api.cc test/kubesim/api.h \
	test/kubesim/api_bind.cc \
	test/kubesim/api_delete.cc \
	test/kubesim/api_evict.cc \
	test/kubesim/api_read.cc \
	test/kubesim/api_write.cc \
	test/kubesim/audit.cc test/kubesim/audit.h \
	test/kubesim/auth.cc test/kubesim/auth.h \
	test/kubesim/base64.cc test/kubesim/base64.h \
	test/kubesim/claim.cc \
	test/kubesim/claim.h \
	test/kubesim/container.cc test/kubesim/container.h \
	test/kubesim/discovery.cc \
	test/kubesim/failure.cc test/kubesim/failure.h \
	test/kubesim/faults.cc test/kubesim/faults.h \
	test/kubesim/hang.cc test/kubesim/hang.h \
	test/kubesim/http.cc test/kubesim/http.h \
	test/kubesim/jv.cc test/kubesim/jv.h \
	test/kubesim/kinds.cc test/kubesim/kinds.h \
	test/kubesim/kubelet.cc test/kubesim/kubelet.h \
	test/kubesim/kubelet_pod.cc \
	test/kubesim/kubelet_resize.cc \
	test/kubesim/kubelet_status.cc \
	test/kubesim/loop.cc test/kubesim/loop.h \
	test/kubesim/main.cc \
	test/kubesim/meta.cc test/kubesim/meta.h \
	test/kubesim/options.cc test/kubesim/options.h \
	test/kubesim/patch.cc test/kubesim/patch.h \
	test/kubesim/pod.cc test/kubesim/pod.h \
	test/kubesim/pod_resize.cc \
	test/kubesim/protobuf.cc test/kubesim/protobuf.h \
	test/kubesim/quantity.cc test/kubesim/quantity.h \
	test/kubesim/rbac.cc test/kubesim/rbac.h \
	test/kubesim/request.cc test/kubesim/request.h \
	test/kubesim/selector.cc test/kubesim/selector.h \
	test/kubesim/shim.cc \
	test/kubesim/store.cc test/kubesim/store.h \
	test/kubesim/strategic.cc \
	test/kubesim/table.cc test/kubesim/table.h \
	test/kubesim/times.cc test/kubesim/times.h \
	test/kubesim/view.cc test/kubesim/view.h \
	test/kubesim/watch.cc test/kubesim/watch.h \
	test/kubesim/yaml.cc test/kubesim/yaml.h
test_kubesim_kubesim_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(YAML_CFLAGS) \
	$(MICROHTTPD_CFLAGS) $(GNUTLS_CFLAGS)
test_kubesim_kubesim_LDADD = $(MICROHTTPD_LIBS) $(GNUTLS_LIBS) $(JANSSON_LIBS) $(YAML_LIBS)
EXTRA_DIST += test/kubesim/up test/kubesim/down test/kubesim/test_kubesim.py \
	test/contract/conftest.py test/contract/kube.py test/contract/test_access.py \
	test/contract/test_binding.py test/contract/test_deletion.py test/contract/test_discovery.py \
	test/contract/test_devices.py test/contract/test_eviction.py \
	test/contract/test_lists.py test/contract/test_pods.py test/contract/test_resize.py test/contract/test_watch.py \
	test/contract/test_writes.py
