// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include <string>
#include <utility>
#include <vector>

#include "lib/base/json.h"
#include "lib/kube/splitter.h"
#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::kube;

namespace {

using ItemFn = std::function<bool(std::string_view)>;
using List = ListSplitter<ItemFn>;
using Status = List::Status;

struct Cut {
	Status status = Status::more;
	std::vector<std::string> items;
	std::string envelope;
	bool operator==(const Cut &) const = default;
};

// Feeds the pieces of text between the given positions.
Cut cut(std::string_view text, const std::vector<std::size_t> &at = {}, std::size_t max_item = 1 << 20,
	std::size_t max_envelope = 1 << 20)
{
	Cut out;
	List list(
		[&](std::string_view item) {
			out.items.emplace_back(item);
			return true;
		},
		max_item, max_envelope);
	std::size_t from = 0;
	for (std::size_t to : at) {
		list.feed(text.substr(from, to - from));
		from = to;
	}
	list.feed(text.substr(from));
	out.status = list.finish();
	out.envelope = list.envelope();
	return out;
}

const std::string tricky = R"( { "kind" : "PodList" , "metadata" : {"resourceVersion":"7","items":[1,"]"]} ,
	"items" : [ {"a":"]}\\","b":[1,{"c":"\""}]} , {} ,{"\u005d":"\\\\"}] , "z":"\"}" } )";

} // namespace

TEST_CASE("a list is cut into the same items wherever its chunks end")
{
	const Cut whole = cut(tricky);
	REQUIRE(whole.status == Status::done);
	REQUIRE(whole.items.size() == 3);
	CHECK(whole.items[0] == R"({"a":"]}\\","b":[1,{"c":"\""}]})");
	for (std::size_t i = 0; i <= tricky.size(); i++)
		for (std::size_t j = i; j <= tricky.size(); j++)
			REQUIRE(cut(tricky, {i, j}) == whole);
	std::vector<std::size_t> everywhere;
	for (std::size_t i = 0; i < tricky.size(); i++)
		everywhere.push_back(i);
	CHECK(cut(tricky, everywhere) == whole);
	auto envelope = Json::parse(whole.envelope);
	REQUIRE(envelope.ok());
	CHECK((*envelope)["metadata"]["resourceVersion"].str() == "7");
	CHECK((*envelope)["items"].size() == 0);
}

TEST_CASE("a list that ends early is never done")
{
	for (std::size_t n = 0; n + 2 < tricky.size(); n++) // what follows the } is white space
		REQUIRE(cut(std::string_view(tricky).substr(0, n)).status == Status::malformed);
}

TEST_CASE("lists of every form")
{
	struct Row {
		const char *text;
		Status status;
		std::size_t items;
	};
	const Row rows[] = {
		{R"({"items":[]})", Status::done, 0},
		{R"({"items":null})", Status::done, 0},
		{R"({"kind":"items","items":[{"a":"\"}\\"}]})", Status::done, 1},
		{R"({"kind":"Status","code":410})", Status::done, 0},
		{R"({"a":{"items":[{}]}})", Status::done, 0},
		{R"({"items":[{}{}]})", Status::malformed, 1},
		{R"({"items":[1]})", Status::malformed, 0},
		{R"({"items":["a"]})", Status::malformed, 0},
		{R"({"items":[[]]})", Status::malformed, 0},
		{R"({"items":[,{}]})", Status::malformed, 0},
		{R"({"items":[{},]})", Status::malformed, 1},
		{R"({"items":[{},{},]})", Status::malformed, 2},
		{R"({"items":[{}]}x)", Status::malformed, 1},
		{R"({"items":[}]})", Status::malformed, 0},
		{"}", Status::malformed, 0},
		{"", Status::malformed, 0},
		{"<html>", Status::malformed, 0},
	};
	for (const Row &row : rows) {
		INFO(row.text);
		Cut got = cut(row.text);
		CHECK(got.status == row.status);
		CHECK(got.items.size() == row.items);
	}
}

TEST_CASE("items and envelopes above their limit are refused, wherever chunks end")
{
	const std::string text = R"({"items":[{"a":"0123456789"}],"k":"v"})"; // item: 18 bytes
	for (std::size_t i = 0; i <= text.size(); i++) {
		CHECK(cut(text, {i}, 18).status == Status::done);
		CHECK(cut(text, {i}, 17).status == Status::too_large);
		CHECK(cut(text, {i}, 18, 20).status == Status::done);
		CHECK(cut(text, {i}, 18, 19).status == Status::too_large);
	}
}

TEST_CASE("a list stops when its reader says so")
{
	int seen = 0;
	List list([&](std::string_view) { return ++seen < 2; });
	CHECK(list.feed(R"({"items":[{},{},{}]})") == Status::stopped);
	CHECK(list.feed("{}") == Status::stopped);
	CHECK(seen == 2);
}

TEST_CASE("lines are the same wherever chunks end, and too long ones are cut and passed over")
{
	const std::string text = "one\n\nfour5\n1234567890\nx\nrest";
	for (std::size_t i = 0; i <= text.size(); i++)
		for (std::size_t j = i; j <= text.size(); j++) {
			std::vector<std::pair<std::string, bool>> got;
			auto add = [&](std::string_view line, bool is_cut) {
				got.emplace_back(line, is_cut);
				return true;
			};
			LineSplitter<decltype(add)> lines(add, 5);
			lines.feed(text.substr(0, i));
			lines.feed(text.substr(i, j - i));
			lines.feed(text.substr(j));
			REQUIRE(got == std::vector<std::pair<std::string, bool>>{
					       {"one", false}, {"four5", false}, {"12345", true}, {"x", false}});
			REQUIRE(lines.pending() == 4);
		}
}

TEST_CASE("lines stop when their reader says so")
{
	int seen = 0;
	auto stop = [&](std::string_view, bool) { return ++seen < 2; };
	LineSplitter<decltype(stop)> lines(stop);
	CHECK(lines.feed("a\n"));
	CHECK_FALSE(lines.feed("b\nc\nd\n"));
	CHECK_FALSE(lines.feed("e\n"));
	CHECK(seen == 2);
}

TEST_CASE("managed fields are cut out of an object and nothing else")
{
	const std::pair<const char *, const char *> rows[] = {
		{R"({"a":1})", R"({"a":1})"},
		{R"({"managedFields":[{"f:x":["]",{}]}],"name":"n"})", R"({"name":"n"})"},
		{R"({"name":"n","managedFields":[{"k:{\"a\":\"]\"}":1}]})", R"({"name":"n"})"},
		{R"({"managedFields":[]})", R"({})"},
		{R"({"a":"\"managedFields\":[","b":1})", R"({"a":"\"managedFields\":[","b":1})"},
		{R"({"managedFields":[{"a":)", R"({"managedFields":[{"a":)"},
		{R"({"managedFields":["\)", R"({"managedFields":["\)"},
		// a key that ends in a quote is another key
		{R"({"\"managedFields":["]"],"b":1})", R"({"\"managedFields":["]"],"b":1})"},
		{R"({"\"managedFields":[],"managedFields":[1],"b":1})", R"({"\"managedFields":[],"b":1})"},
		// white space, which API servers do not send
		{R"({"a":1, "managedFields":[] })", R"({"a":1})"},
		{R"({"managedFields":[] ,"b":1})", R"({"b":1})"},
	};
	for (const auto &[in, want] : rows) {
		std::string buf;
		CHECK(without_managed_fields(in, buf) == want);
	}
}
