// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/config_codec.h"

#include "lib/base/duration.h"
#include "lib/base/quantity.h"
#include "lib/base/result.h"
#include "lib/base/text.h"

namespace sk8 {

namespace {

constexpr std::size_t max_list_items = 10000;

// A scalar that has a value; else an error that says what it should have been.
bool want_scalar(const Place &place, const char *wanted)
{
	if (place.node().is_null()) {
		place.error(strprintf("has no value, write %s or remove the key", wanted));
		return false;
	}
	if (place.node().is_scalar())
		return true;
	place.error(strprintf("is %s, write %s", kind_name(place.node()), wanted));
	return false;
}

bool read_string(const Place &place, std::string &to)
{
	if (!want_scalar(place, "one text"))
		return false;
	for (const char c : place.node().text) {
		const auto byte = static_cast<unsigned char>(c);
		if (byte < 0x20 || byte == 0x7f) {
			place.error(quoted_value(place.node()) +
				    " contains a line break or control character, remove it");
			return false;
		}
	}
	to = place.node().text;
	return true;
}

bool read_quantity(const Place &place, std::int64_t &to, const char *wanted,
		   Result<std::int64_t> (*parse)(std::string_view))
{
	if (!want_scalar(place, wanted))
		return false;
	const Result<std::int64_t> n = parse(place.node().text);
	if (!n) {
		place.error(n.error().message);
		return false;
	}
	to = *n;
	return true;
}

} // namespace

template <>
Codec<std::string> codec<std::string>()
{
	return {"text", read_string, [](const std::string &v) { return v; }, {}, {}};
}

template <>
Codec<bool> codec<bool>()
{
	return {"true or false",
		[](const Place &place, bool &to) {
			if (!want_scalar(place, "true or false"))
				return false;
			const std::string &text = place.node().text;
			if (text != "true" && text != "false") {
				place.error(quoted_value(place.node()) + " is neither true nor false");
				return false;
			}
			to = text == "true";
			return true;
		},
		[](const bool &v) { return std::string(v ? "true" : "false"); },
		{},
		{}};
}

template <>
Codec<Millis> codec<Millis>()
{
	return {"duration",
		[](const Place &place, Millis &to) {
			if (!want_scalar(place, "a duration like 40s"))
				return false;
			const Result<Millis> duration = parse_duration(place.node().text);
			if (!duration) {
				place.error(duration.error().message);
				return false;
			}
			to = *duration;
			return true;
		},
		format_duration,
		{},
		{}};
}

template <>
Codec<std::vector<std::string>> codec<std::vector<std::string>>()
{
	using V = std::vector<std::string>;
	return {"list of texts",
		[](const Place &place, V &to) {
			bool ok = true;
			ok &= config_detail::read_items(place, max_list_items, [&](const Place &item) {
				ok &= read_string(item, to.emplace_back());
			});
			return ok;
		},
		[](const V &v) { return v.empty() ? std::string() : "[" + join(v, ", ") + "]"; },
		{},
		{}};
}

template <>
Codec<std::map<std::string, std::string>> codec<std::map<std::string, std::string>>()
{
	using M = std::map<std::string, std::string>;
	return {"map of texts",
		[](const Place &place, M &to) {
			if (place.node().is_null())
				return true;
			if (!place.node().is_mapping()) {
				place.error(std::string("is ") + kind_name(place.node()) +
					    ", write a map of texts (name: text)");
				return false;
			}
			bool ok = true;
			for (const YamlMember &m : place.node().members)
				ok &= read_string(place.member(m), to[m.key]);
			return ok;
		},
		[](const M &m) {
			std::vector<std::string> parts;
			for (const auto &[key, value] : m)
				parts.push_back(key + ": " + value);
			return m.empty() ? std::string() : "{" + join(parts, ", ") + "}";
		},
		{},
		{}};
}

Codec<std::int64_t> integer_codec(std::int64_t min, std::int64_t max)
{
	return {"integer",
		[min, max](const Place &place, std::int64_t &to) {
			if (!want_scalar(place, "a whole number"))
				return false;
			const auto n = parse_integer(place.node().text, min, max);
			if (!n) {
				place.error(strprintf("%s is no whole number from %lld to %lld",
						      quoted_value(place.node()).c_str(),
						      static_cast<long long>(min),
						      static_cast<long long>(max)));
				return false;
			}
			to = *n;
			return true;
		},
		[](const std::int64_t &v) { return std::to_string(v); },
		{},
		{}};
}

Codec<std::int64_t> milli_cpu_codec()
{
	return {"CPUs",
		[](const Place &place, std::int64_t &to) {
			return read_quantity(place, to, "CPUs like 2 or 250m", parse_milli);
		},
		[](const std::int64_t &v) {
			return v % 1000 ? std::to_string(v) + "m" : std::to_string(v / 1000);
		},
		{},
		{}};
}

Codec<std::int64_t> bytes_codec()
{
	return {"bytes",
		[](const Place &place, std::int64_t &to) {
			return read_quantity(place, to, "an amount of memory like 512Mi", parse_whole);
		},
		[](const std::int64_t &v) {
			static constexpr const char *suffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
			std::int64_t n = v;
			std::size_t i = 0;
			while (n && n % 1024 == 0) {
				n /= 1024;
				i++;
			}
			return std::to_string(n) + suffixes[i];
		},
		{},
		{}};
}

} // namespace sk8
