// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/json_mend.h"

#include <random>

#include "test/unit/catch.h"

using namespace sk8;

TEST_CASE("sent JSON: what Go takes is read, whatever jansson says")
{
	const std::string deep = std::string(5'000, '[') + std::string(5'000, ']');
	const struct {
		std::string text, read;
	} cases[] = {
		{R"({"a\u0000b":1})", "{\"a\xef\xbf\xbd" "b\":1}"},
		{R"({"a\u0000":1,"b":"c\u0000"})", "{\"a\xef\xbf\xbd\":1,\"b\":\"c\xef\xbf\xbd\"}"},
		{R"({"a\\u0000\u0000":1})", "{\"a\\\\u0000\xef\xbf\xbd\":1}"}, // the first one is a backslash and five letters
		{R"(["\ud800","\ud800\ud800","\udc00","\ud83d\ude00","\ud800x"])",
		 "[\"\xef\xbf\xbd\",\"\xef\xbf\xbd\xef\xbf\xbd\",\"\xef\xbf\xbd\",\"\xf0\x9f\x98\x80\",\"\xef\xbf\xbdx\"]"},
		{"{\"a\":\"\xff\",\"\xfe\":1}", R"({"a":"?","?":1})"},
		{R"([99999999999999999999,-99999999999999999999,18446744073709551615,9223372036854775807])",
		 "[9223372036854775807,-9223372036854775808,9223372036854775807,9223372036854775807]"},
		{R"([1e999,-1E+999,1.5])", "[0,0,1.5]"},
		{R"({"a":1,"a":2})", R"({"a":2})"},
		{R"({"a":)" + deep + R"(,"b":1})", R"({"a":)" + std::string(511, '[') + "null" + std::string(511, ']') + R"(,"b":1})"},
	};
	for (const auto &c : cases) {
		INFO(c.text.substr(0, 60));
		REQUIRE_FALSE(Json::parse(c.text).ok());
		const auto read = parse_sent_json(c.text);
		REQUIRE(read.ok());
		CHECK(read->dump() == c.read);
	}
}

TEST_CASE("sent JSON: what is none stays none")
{
	for (const char *text : {"", "{", "{\"a\":", "\"\\u0000", "\"\\", "\"\\u00", "[1 2]", "{\"a\" 1}", "nan", "]", "}}}}", "[99999999999999999999",
				 "--1", "+", "\"\\ud800\\"})
		CHECK_FALSE(parse_sent_json(text).ok());
}

TEST_CASE("sent JSON: mending changes nothing of what can be read")
{
	std::mt19937 random(1);
	const auto number = [&](unsigned below) { return static_cast<unsigned>(random() % below); };
	std::function<Json(int)> any = [&](int depth) {
		switch (number(depth > 4 ? 4 : 6)) {
		case 0:
			return Json::null();
		case 1:
			return Json::integer(static_cast<std::int64_t>((std::uint64_t{random()} << 32) | random()));
		case 2:
			return Json::boolean(number(2) == 1);
		case 3: {
			std::string text;
			for (unsigned n = number(8); n > 0; n--)
				text += "\\\"\t{}[],:u0x\xc3\xa4"[number(14)];
			return Json::string(text);
		}
		case 4: {
			Json list = Json::array();
			for (unsigned n = number(4); n > 0; n--)
				list.append(any(depth + 1));
			return list;
		}
		default: {
			Json object = Json::object();
			for (unsigned n = number(4); n > 0; n--)
				object.set("k\\\"" + std::to_string(n), any(depth + 1));
			return object;
		}
		}
	};
	for (int i = 0; i < 2'000; i++) {
		const std::string text = any(0).dump();
		CHECK(mended_json(text) == text);
	}
}
