// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/kube/credentials.h"
#include "test/unit/catch.h"
#include "test/unit/kube/temp_folder.h"
#include "test/unit/kube/virtual_clock.h"

using namespace sk8;
using namespace sk8::kube;

namespace {

struct Fixture {
	TempFolder folder;
	VirtualClock clock;
	ClusterAccess access;

	Fixture()
	{
		set_log_sink([](LogLevel, const char *) {}, LogLevel::info);
		access.owner = ::geteuid();
		access.token.file = folder.write("token", "one\n");
		access.token.trust = Trust::secret;
		access.ca.file = folder.write("ca", "-----BEGIN CERTIFICATE-----1");
	}
	~Fixture() { set_log_sink(nullptr, LogLevel::info); }
};

} // namespace

TEST_CASE("credentials: a token file is believed for a minute, then read again")
{
	Fixture f;
	Credentials c(f.access, f.clock, Millis(60'000));
	CHECK(c.get()->token == "one");
	f.folder.write("token", "two");
	f.clock.advance(Millis(59'999));
	CHECK(c.get()->token == "one");
	f.clock.advance(Millis(1));
	CHECK(c.get()->token == "two");
}

TEST_CASE("credentials: what cannot be read any more stays in use")
{
	Fixture f;
	Credentials c(f.access, f.clock, Millis(60'000));
	auto before = c.get();
	for (const char *broken : {"", " \n", "two\r\nX-Evil: 1"}) {
		f.folder.write("token", broken);
		f.clock.advance(Millis(60'000));
		CHECK(c.get()->token == "one");
	}
	f.folder.write("token", "two", 0644); // readable by others: not believed
	f.clock.advance(Millis(60'000));
	CHECK(c.get()->token == "one");
	::unlink(f.access.token.file.c_str());
	f.folder.write("ca", "no certificate");
	f.clock.advance(Millis(60'000));
	CHECK(c.get()->tls == before->tls);
}

TEST_CASE("credentials: what was never readable is an error, and works once it is")
{
	Fixture f;
	::unlink(f.access.token.file.c_str());
	Credentials c(f.access, f.clock, Millis(60'000));
	CHECK_FALSE(c.get().ok());
	f.folder.write("token", "late");
	CHECK(c.get()->token == "late");
}

TEST_CASE("credentials: only changed certificates are new TLS material")
{
	Fixture f;
	Credentials c(f.access, f.clock, Millis(60'000));
	auto first = c.get()->tls;
	f.folder.write("token", "two");
	f.clock.advance(Millis(60'000));
	CHECK(c.get()->tls == first);
	f.folder.write("ca", "-----BEGIN CERTIFICATE-----2");
	f.clock.advance(Millis(60'000));
	CHECK(c.get()->tls != first);
	CHECK(c.get()->tls->ca == "-----BEGIN CERTIFICATE-----2");
}

TEST_CASE("credentials: in doubt the files are read again, once a second at most")
{
	Fixture f;
	Credentials c(f.access, f.clock, Millis(60'000));
	CHECK(c.get()->token == "one");
	f.folder.write("token", "two");
	c.doubt();
	CHECK(c.get()->token == "one");
	f.clock.advance(Millis(1000));
	c.doubt();
	CHECK(c.get()->token == "two");
}
