// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/unit/kube/fake_dns.h"

#include <condition_variable>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <netdb.h>

namespace {

struct Name {
	std::vector<std::string> addresses;
	bool hangs = false;
};

// Leaked: a resolver's thread may outlive main().
struct Names {
	std::mutex mutex;
	std::condition_variable changed;
	std::map<std::string, Name> known;
	std::map<std::string, int> asked;
};

Names &names()
{
	static auto *all = new Names;
	return *all;
}

using GetAddrInfo = int (*)(const char *, const char *, const addrinfo *, addrinfo **);

GetAddrInfo real()
{
	static auto f = reinterpret_cast<GetAddrInfo>(::dlsym(RTLD_NEXT, "getaddrinfo"));
	return f;
}

} // namespace

FakeDns::~FakeDns()
{
	std::lock_guard lock(names().mutex);
	names().known.clear();
	names().asked.clear();
	names().changed.notify_all();
}

void FakeDns::set(const std::string &name, std::vector<std::string> addresses)
{
	std::lock_guard lock(names().mutex);
	names().known[name] = {std::move(addresses), false};
	names().changed.notify_all();
}

void FakeDns::hang(const std::string &name)
{
	std::lock_guard lock(names().mutex);
	names().known[name] = {{}, true};
}

int FakeDns::asked(const std::string &name)
{
	std::lock_guard lock(names().mutex);
	return names().asked[name];
}

extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service, const addrinfo *hints, addrinfo **out)
{
	std::vector<std::string> addresses;
	{
		std::unique_lock lock(names().mutex);
		auto at = names().known.find(node ? node : "");
		if (at == names().known.end()) {
			lock.unlock();
			return real()(node, service, hints, out);
		}
		names().asked[node]++;
		names().changed.wait(lock, [&] {
			at = names().known.find(node);
			return at == names().known.end() || !at->second.hangs;
		});
		if (at != names().known.end())
			addresses = at->second.addresses;
	}
	*out = nullptr;
	addrinfo **end = out;
	for (const std::string &address : addresses) {
		if (real()(address.c_str(), service, hints, end) != 0)
			continue; // of a family that was not asked for
		while (*end)
			end = &(*end)->ai_next;
	}
	return *out ? 0 : EAI_NONAME;
}
