// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// How a line of the log about a job of Slurm's own looks.
#ifndef SK8_CORE_RESERVATION_LOG_H
#define SK8_CORE_RESERVATION_LOG_H

#include "lib/base/log_limit.h"

// In a member function of what has settings_. ref: a JobRef.
#define log_job(level, ref, format, ...) \
	log_limited(::sk8::LogLevel::level, std::to_string((ref).id), "job %u of cluster %s: " format, (ref).id, \
		    settings_.name.c_str() __VA_OPT__(, ) __VA_ARGS__)

// The same of a pod that jobs share; node: a std::string.
#define log_shared(level, node, format, ...) \
	log_limited(::sk8::LogLevel::level, node, "cluster %s: the reservation pod that small jobs share on node %s: " format, \
		    settings_.name.c_str(), (node).c_str() __VA_OPT__(, ) __VA_ARGS__)

#endif
