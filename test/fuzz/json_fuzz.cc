// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// JSON: what is read is written and read again as the same value; any bytes can be
// put into a string; reads of the wrong type or of nothing are harmless.
#include "lib/base/json.h"
#include "lib/base/text.h"
#include "test/fuzz/fuzz.h"

using namespace sk8;
using namespace sk8::fuzz;

namespace {

// Values below this one; every read of each of them.
std::size_t walk(const Json &j)
{
	std::size_t n = 1;
	expect(j.size() == 0 || j.is_array() || j.is_object(), "only lists and objects have a size");
	expect(j.str("none") == "none" || j.is_string(), "only a string reads as text");
	expect(j.integer_or(7) == 7 || j.is_integer(), "only an integer reads as a number");
	expect(j.boolean_or(true) || j.is_boolean(), "only a boolean reads as one");
	expect(j.at(j.size()).is_null(), "there is nothing behind the last element");
	j.each_member([&](std::string_view key, const Json &value) {
		expect(!j[key].is_null() || value.is_null(), "a member is found by its key", key);
		n += walk(value);
	});
	j.each_item([&](const Json &value) { n += walk(value); });
	return n;
}

void check_document(std::string_view text)
{
	const Result<Json> doc = Json::parse(text);
	if (!doc)
		return expect_sentence(doc.error().message, 128);
	const std::string written = doc->dump();
	const Result<Json> again = Json::parse(written);
	expect(again.ok(), "what is written can be read", written);
	expect(again->dump() == written, "writing changes nothing", written);
	expect(walk(*doc) == walk(*again), "nothing is lost", written);
}

void check_string(std::string_view bytes)
{
	Json object = Json::object();
	object.set("text", bytes).set(bytes, Json::integer(1));
	const Result<Json> again = Json::parse(object.dump());
	// A zero byte is legal in a string, not in a key: only we could write such a key.
	if (bytes.find('\0') == bytes.npos) {
		expect(again.ok(), "any bytes make a string", bytes);
		if (bytes != "text")
			expect((*again)["text"].str() == valid_utf8(bytes), "a string keeps its text", bytes);
	}
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	const std::string_view text(reinterpret_cast<const char *>(data), size);
	check_document(text);
	check_string(text);
	return 0;
}
