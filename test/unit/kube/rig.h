// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What tests of the network share: a loop under a virtual clock and an access to a
// test's server.
#ifndef SK8_TEST_UNIT_KUBE_RIG_H
#define SK8_TEST_UNIT_KUBE_RIG_H

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/log.h"
#include "lib/kube/client.h"
#include "lib/kube/http_loop.h"
#include "test/unit/catch.h"
#include "test/unit/kube/https_server.h"
#include "test/unit/kube/virtual_clock.h"

inline sk8::kube::ClusterAccess access_to(const std::string &url)
{
	sk8::kube::ClusterAccess out;
	out.source = "the test";
	out.server = url;
	out.ca.data = Pki::get().ca;
	out.token.data = "secret-1";
	return out;
}

struct Rig {
	VirtualClock clock;
	sk8::kube::HttpLoop loop{clock};

	Rig()
	{
		sk8::set_log_sink([](sk8::LogLevel, const char *) {}, sk8::LogLevel::debug);
	}
	~Rig() { sk8::set_log_sink(nullptr, sk8::LogLevel::info); }

	// Runs the loop until the condition holds; each wait ends with an event of the
	// network. False after a minute of real time: other suites
	// may have the processors.
	template <class F>
	bool until(F &&condition)
	{
		auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
		while (!condition()) {
			if (std::chrono::steady_clock::now() > end)
				return false;
			loop.run_once(sk8::Millis(20));
		}
		return true;
	}
	// Lets what is due happen, without waiting.
	void settle()
	{
		for (int i = 0; i < 5; i++)
			loop.run_once(sk8::Millis(0));
	}

	sk8::kube::HttpResponse fetch(sk8::kube::HttpRequest request)
	{
		std::optional<sk8::kube::HttpResponse> got;
		loop.start(std::move(request),
			   [&](sk8::kube::HttpResponse r) { got = std::move(r); });
		REQUIRE(until([&] { return got.has_value(); }));
		return std::move(*got);
	}
};

inline sk8::kube::HttpRequest request_to(const std::string &url, const std::string &ca = Pki::get().ca,
					 const std::string &server_name = "")
{
	sk8::kube::HttpRequest out;
	out.url = url;
	auto tls = std::make_shared<sk8::kube::TlsMaterial>();
	tls->ca = ca;
	tls->server_name = server_name;
	out.tls = std::move(tls);
	return out;
}

#endif
