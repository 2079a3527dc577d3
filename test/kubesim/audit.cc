// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/audit.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "test/kubesim/meta.h"
#include "test/kubesim/times.h"

namespace kubesim {

Audit::~Audit()
{
	if (fd_ >= 0)
		close(fd_);
}

std::string Audit::open(const std::string &path)
{
	fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	return fd_ < 0 ? "cannot write the audit log " + path + ": " + strerror(errno) : "";
}

static J object_ref(const Request &r)
{
	J ref = J::make("resource", r.resource);
	const std::string name = r.name.empty() ? r.object_name : r.name;
	for (auto [key, value] : {std::pair("namespace", r.ns), std::pair("name", name),
				  std::pair("uid", r.object_uid), std::pair("apiGroup", r.group),
				  std::pair("apiVersion", r.version), std::pair("subresource", r.subresource)})
		if (!value.empty())
			ref.set(key, value);
	return ref;
}

void Audit::log(const Request &r, int code, const char *stage)
{
	if (fd_ < 0)
		return;
	std::string uri = r.path;
	for (const auto &[key, value] : r.query)
		uri += (uri == r.path ? "?" : "&") + key + "=" + value;
	J e = J::make("kind", "Event", "apiVersion", "audit.k8s.io/v1", "level", "Request", "auditID", new_uid(),
		      "stage", stage, "requestURI", uri, "verb", r.verb, "user",
		      J::make("username", r.user.name, "groups", J::list(r.user.groups)), "sourceIPs",
		      J::list({r.source_ip}), "userAgent", r.user_agent);
	if (r.is_resource)
		e.set("objectRef", object_ref(r));
	e.set("responseStatus", J::make("metadata", J::object(), "code", code));
	const bool reservation = r.method == "POST" && r.ns == "slurm-k8s-jobs" && r.resource == "pods";
	const bool with_body = r.subresource == "binding" || reservation || r.method == "DELETE" || r.method == "PATCH";
	if (with_body && !r.body.empty())
		if (J body = J::parse(r.body))
			e.set("requestObject", body);
	e.set("requestReceivedTimestamp", rfc3339_micro(r.received_us));
	e.set("stageTimestamp", rfc3339_micro(now_us()));
	const std::string line = e.dump() + "\n";
	// One write per line: appends of several writers do not mix.
	if (write(fd_, line.data(), line.size()) < 0)
		dprintf(2, "kubesim: cannot write the audit log: %s\n", strerror(errno));
}

} // namespace kubesim
