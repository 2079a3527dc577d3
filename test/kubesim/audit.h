// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// One JSON line per finished request, in the form of Kubernetes' audit log
// (audit.k8s.io/v1 Event, stage ResponseComplete), so that one reader serves both.
#ifndef KUBESIM_AUDIT_H
#define KUBESIM_AUDIT_H

#include <string>

#include "test/kubesim/request.h"

namespace kubesim {

class Audit {
public:
	~Audit();
	std::string open(const std::string &path); // an error sentence, or ""
	void log(const Request &request, int code, const char *stage = "ResponseComplete");

private:
	int fd_ = -1;
};

} // namespace kubesim

#endif
