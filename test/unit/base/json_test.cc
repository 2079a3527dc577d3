// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/json.h"

#include <stdexcept>

#include "test/unit/catch.h"

using sk8::Json;
using sk8::Result;

TEST_CASE("json: what was parsed is dumped the same, keys in their order")
{
	const char *text = R"({"z":1,"a":[true,false,null,"x",-5,1.5],"m":{"k":"v"}})";
	Result<Json> j = Json::parse(text);
	REQUIRE(j.ok());
	CHECK(j->dump() == text);
	CHECK(Json::parse(" 5 ")->integer_or(0) == 5);
	CHECK(Json::parse("\"s\"")->str() == "s");
}

TEST_CASE("json: hostile text is refused with line and column, never with its content")
{
	const std::string deep_array(100000, '['), deep_object = [] {
		std::string s;
		for (int i = 0; i < 100000; i++)
			s += "{\"a\":";
		return s;
	}();
	const struct {
		std::string text;
		const char *error;
	} cases[] = {
		{"", "not JSON: line 1, column 0: ends too early"},
		{"{\"secret\":", "not JSON: line 1, column 10: ends too early"},
		{"[1,2]secret", "not JSON: line 1, column 11: more text after the value"},
		{"{\"a\":1,\n\"a\":2}", "not JSON: line 2, column 3: the same key twice"},
		{"{\"a\":{\"b\":1,\"b\":2}}", "not JSON: line 1, column 15: the same key twice"},
		{"\"\xff\"", "not JSON: line 1, column 1: invalid UTF-8"},
		{"\"\xc0\x80\"", "not JSON: line 1, column 1: invalid UTF-8"},
		{"\"\xed\xa0\x80\"", "not JSON: line 1, column 1: invalid UTF-8"},
		{"{\"a\\u0000b\":1}", "not JSON: line 1, column 11: a zero byte in a key"},
		{std::string("\"a\0b\"", 5), "not JSON: line 1, column 2: invalid syntax"},
		{"99999999999999999999", "not JSON: line 1, column 20: a number too large"},
		{"1e999", "not JSON: line 1, column 5: a number too large"},
		{"{secret:1}", "not JSON: line 1, column 7: invalid syntax"},
		{"nan", "not JSON: line 1, column 3: invalid syntax"},
		{deep_array, "not JSON: line 1, column 2049: nested too deeply"},
		{deep_object, "not JSON: line 1, column 10241: nested too deeply"},
	};
	for (const auto &c : cases) {
		INFO(c.text.substr(0, 40));
		Result<Json> j = Json::parse(c.text);
		REQUIRE(!j.ok());
		CHECK(j.error().message == c.error);
	}
}

TEST_CASE("json: a missing or wrongly typed member reads as the default")
{
	Json j = *Json::parse(R"({"s":"text","n":7,"b":true,"a":["x"],"o":{"k":"v"},"z":null})");
	CHECK(j["s"].str() == "text");
	CHECK(j["s"].integer_or(3) == 3);
	CHECK(j["s"]["deeper"]["still"].at(5).is_null());
	CHECK(j["n"].str("other") == "other");
	CHECK(j["n"].integer_or(0) == 7);
	CHECK(j["n"].boolean_or(true));
	CHECK(j["b"].boolean_or(false));
	CHECK(j["a"].size() == 1);
	CHECK(j["a"].at(0).str() == "x");
	CHECK(j["a"].at(1).is_null());
	CHECK(j["a"]["x"].is_null());
	CHECK(j["o"].size() == 1);
	CHECK(j["absent"].is_null());
	CHECK(j["z"].is_null());
	CHECK(j[""].is_null());
	CHECK(j[std::string_view()].is_null());
	CHECK(Json().size() == 0);
	CHECK(Json().dump() == "null");
	CHECK(Json::parse("1.5")->integer_or(4) == 4);
	bool called = false;
	j["s"].each_member([&](std::string_view, const Json &) { called = true; });
	j["o"].each_item([&](const Json &) { called = true; });
	Json().each_item([&](const Json &) { called = true; });
	CHECK_FALSE(called);
}

TEST_CASE("json: a zero byte in a string is kept, a pod cannot hide behind it")
{
	Result<Json> j = Json::parse(R"({"a":"x\u0000y"})");
	REQUIRE(j.ok());
	CHECK((*j)["a"].str() == std::string_view("x\0y", 3));
	CHECK(j->dump() == R"({"a":"x\u0000y"})");
}

TEST_CASE("json: members and items are visited in order")
{
	Json j = *Json::parse(R"({"b":[1,2,3],"a":"x"})");
	std::string seen;
	j.each_member([&](std::string_view key, const Json &) { seen += key; });
	j["b"].each_item([&](const Json &n) { seen += std::to_string(n.integer_or(0)); });
	CHECK(seen == "ba123");
}

TEST_CASE("json: built values dump as expected")
{
	Json j = Json::object();
	j.set("name", "x\"y\n").set("n", Json::integer(INT64_MIN)).set("t", Json::boolean(true));
	j.set("none", Json()).set("list", Json::array().append(Json::string("a")).append(Json()));
	CHECK(j.dump() == R"({"name":"x\"y\n","n":-9223372036854775808,"t":true,)"
			  R"("none":null,"list":["a",null]})");
	CHECK(Json::string("a\xff" "b\xc3").str() == "a?b?");
	CHECK(Json::string("\xc3\xa9").str() == "\xc3\xa9");
	CHECK(Json::string({}).str().empty());
	CHECK(Json::object().set("k\xff", "v").dump() == R"({"k?":"v"})");
}

TEST_CASE("json: writing to the wrong type is a bug and throws")
{
	Json s = Json::string("x"), o = Json::object(), a = Json::array();
	CHECK_THROWS_AS(s.set("k", "v"), std::logic_error);
	CHECK_THROWS_AS(Json().set("k", "v"), std::logic_error);
	CHECK_THROWS_AS(o.append(Json()), std::logic_error);
	CHECK_THROWS_AS(o.set("self", o), std::logic_error);
	CHECK_THROWS_AS(a.append(a), std::logic_error);
}

TEST_CASE("json: copies share, assignment to itself is safe, moved-from is null")
{
	Json a = Json::object(), b = a;
	b.set("k", "v");
	CHECK(a["k"].str() == "v");
	Json &alias = a;
	a = alias;
	CHECK(a["k"].str() == "v");
	Json c = std::move(b);
	CHECK(b.is_null());
	CHECK(c["k"].str() == "v");
}
