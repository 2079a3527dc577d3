# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#
# What every layer stands on: no Slurm, no Kubernetes, no network but the listener.
noinst_LTLIBRARIES += lib/base/libbase.la
lib_base_libbase_la_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(YAML_CFLAGS) $(MICROHTTPD_CFLAGS)
lib_base_libbase_la_LIBADD = $(JANSSON_LIBS) $(YAML_LIBS) $(MICROHTTPD_LIBS) -lpthread
lib_base_libbase_la_SOURCES = \
	lib/base/clock.h \
	lib/base/config.cc \
	lib/base/config.h \
	lib/base/config_codec.cc \
	lib/base/config_codec.h \
	lib/base/config_place.cc \
	lib/base/config_place.h \
	lib/base/doubling.h \
	lib/base/duration.cc \
	lib/base/duration.h \
	lib/base/encoding.cc \
	lib/base/exposition.cc \
	lib/base/exposition.h \
	lib/base/file.cc \
	lib/base/file.h \
	lib/base/guard.h \
	lib/base/http_listener.cc \
	lib/base/http_listener.h \
	lib/base/json.cc \
	lib/base/json.h \
	lib/base/json_mend.cc \
	lib/base/json_mend.h \
	lib/base/log.cc \
	lib/base/log.h \
	lib/base/log_limit.cc \
	lib/base/log_limit.h \
	lib/base/metrics.cc \
	lib/base/metrics.h \
	lib/base/node_list.cc \
	lib/base/node_list.h \
	lib/base/quantity.cc \
	lib/base/quantity.h \
	lib/base/recent.cc \
	lib/base/recent.h \
	lib/base/result.h \
	lib/base/rfc3339.cc \
	lib/base/text.cc \
	lib/base/text.h \
	lib/base/thread.cc \
	lib/base/thread.h \
	lib/base/yaml.cc \
	lib/base/yaml.h
