// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include <string>

#include "lib/kube/rescue.h"
#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::kube;

namespace {

const std::string event = R"( {"type":"MODIFIED","object":{"kind":"Pod","metadata":{"labels":{"uid":"no"},
	"name":"p\u002d1","namespace":"ns","n":[1,{"a":"}"}],"uid":"u-1","resourceVersion":"7","x":1},
	"spec":{"bad":"\ud800","bad":01}}})";

} // namespace

TEST_CASE("of an event that cannot be parsed the identity of its object is saved")
{
	REQUIRE_FALSE(Json::parse(event).ok());
	auto got = rescue_event(event);
	REQUIRE(got.has_value());
	CHECK(got->type == "MODIFIED");
	Json meta = got->object["metadata"];
	CHECK(meta["name"].str() == "p-1");
	CHECK(meta["namespace"].str() == "ns");
	CHECK(meta["uid"].str() == "u-1");
	CHECK(meta["resourceVersion"].str() == "7");
}

TEST_CASE("an event cut anywhere gives nothing or the right identity")
{
	std::size_t saved = 0;
	for (std::size_t n = 0; n <= event.size(); n++) {
		auto got = rescue_event(std::string_view(event).substr(0, n));
		if (!got)
			continue;
		saved++;
		CHECK(got->object["metadata"]["uid"].str() == "u-1");
		CHECK(got->object["metadata"]["name"].str() == "p-1");
	}
	CHECK(saved > 40);
}

TEST_CASE("what has no name or uid gives nothing")
{
	for (const char *text : {"", "{", "[]", "null", "{}", R"({"metadata":{"name":"a"}})",
				 R"({"metadata":{"uid":"a"}})", R"({"metadata":{"name":5,"uid":"a"}})",
				 R"({"metadata":[]})", R"({"metadata":)", R"({"a)", R"({"a":"\)",
				 R"({"spec":{"metadata":{"name":"a","uid":"b"}}})"}) {
		INFO(text);
		CHECK_FALSE(rescue_object(text).has_value());
	}
}
