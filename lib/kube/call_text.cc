// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/kube/call_text.h"

#include <utility>
#include <vector>

#include "lib/base/text.h"

namespace sk8::kube {

const char *reason_phrase(int status)
{
	static constexpr std::pair<int, const char *> known[] = {
		{400, "Bad Request"},	    {401, "Unauthorized"},
		{403, "Forbidden"},	    {404, "Not Found"},
		{405, "Method Not Allowed"}, {409, "Conflict"},
		{410, "Gone"},		    {413, "Too Large"},
		{415, "Unsupported Media Type"}, {422, "Invalid"},
		{429, "Too Many Requests"}, {500, "Internal Server Error"},
		{502, "Bad Gateway"},	    {503, "Service Unavailable"},
		{504, "Gateway Timeout"},
	};
	for (auto [code, text] : known)
		if (code == status)
			return text;
	return "an unexpected status";
}

// /api/v1/namespaces/ns/pods/name/binding -> {"pods/binding", "ns/name"}
Target target_of(std::string_view path)
{
	std::vector<std::string_view> parts = split(path.substr(1), '/');
	std::size_t at = !parts.empty() && parts[0] == "api" ? 2 : 3;
	auto next = [&]() -> std::string_view { return at < parts.size() ? parts[at++] : ""; };
	Target out;
	std::string_view first = next();
	std::string &ns = out.ns;
	if (first == "namespaces" && at + 1 < parts.size()) {
		ns = next();
		first = next();
	}
	out.resource = first;
	std::string_view name = next(), subresource = next();
	if (!subresource.empty())
		out.resource += "/" + std::string(subresource);
	out.object = ns;
	if (!name.empty())
		out.object += (ns.empty() ? "" : "/") + std::string(name);
	return out;
}

} // namespace sk8::kube
