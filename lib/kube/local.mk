# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
noinst_LTLIBRARIES += lib/kube/libkube.la
lib_kube_libkube_la_SOURCES = \
	lib/kube/backoff.h \
	lib/kube/call_text.cc \
	lib/kube/call_text.h \
	lib/kube/client.cc \
	lib/kube/client.h \
	lib/kube/credentials.cc \
	lib/kube/credentials.h \
	lib/kube/decode.cc \
	lib/kube/decode.h \
	lib/kube/dra_objects.cc \
	lib/kube/dra_objects.h \
	lib/kube/http_loop.cc \
	lib/kube/http_loop.h \
	lib/kube/http_transfer.cc \
	lib/kube/http_transfer.h \
	lib/kube/kubeconfig.cc \
	lib/kube/kubeconfig.h \
	lib/kube/objects.cc \
	lib/kube/objects.h \
	lib/kube/recovery.cc \
	lib/kube/recovery.h \
	lib/kube/reflector.cc \
	lib/kube/reflector.h \
	lib/kube/request_queue.h \
	lib/kube/requests.cc \
	lib/kube/requests.h \
	lib/kube/resize.cc \
	lib/kube/resize.h \
	lib/kube/rescue.cc \
	lib/kube/rescue.h \
	lib/kube/resource_version.h \
	lib/kube/splitter.h \
	lib/kube/store.h \
	lib/kube/url.h \
	lib/kube/work_queue.h
lib_kube_libkube_la_CPPFLAGS = $(AM_CPPFLAGS) $(CURL_CFLAGS)
lib_kube_libkube_la_LIBADD = lib/base/libbase.la $(CURL_LIBS)
