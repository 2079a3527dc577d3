# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
noinst_LTLIBRARIES += lib/kube/libkube.la
lib_kube_libkube_la_SOURCES = \
	lib/kube/objects.cc lib/kube/objects.h \
	lib/kube/requests.cc lib/kube/requests.h
lib_kube_libkube_la_CPPFLAGS = $(AM_CPPFLAGS) $(CURL_CFLAGS)
lib_kube_libkube_la_LIBADD = lib/base/libbase.la $(CURL_LIBS)
