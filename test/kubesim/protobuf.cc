// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/protobuf.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace kubesim {
namespace {

using Fields = std::map<std::uint64_t, std::string_view>; // the length-delimited ones

std::optional<std::uint64_t> take_number(std::string_view &bytes)
{
	std::uint64_t n = 0;
	for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
		auto byte = static_cast<unsigned char>(bytes.front());
		bytes.remove_prefix(1);
		n |= static_cast<std::uint64_t>(byte & 127) << shift;
		if (byte < 128)
			return n;
	}
	return std::nullopt;
}

Fields read_message(std::string_view bytes)
{
	Fields out;
	while (!bytes.empty()) {
		auto tag = take_number(bytes);
		auto value = tag && (*tag & 7) != 1 && (*tag & 7) != 5 ? take_number(bytes) : std::nullopt;
		if (!value || ((*tag & 7) == 2 && *value > bytes.size()))
			return out;
		if ((*tag & 7) == 2) {
			out[*tag >> 3] = bytes.substr(0, *value);
			bytes.remove_prefix(*value);
		}
	}
	return out;
}

J strings(std::string_view message, std::initializer_list<const char *> names)
{
	Fields fields = read_message(message);
	J out = J::object();
	std::uint64_t number = 0;
	for (const char *name : names)
		if (auto it = fields.find(++number); it != fields.end())
			out.set(name, it->second);
	return out;
}

} // namespace

J decode_access_review(const std::string &body)
{
	const std::string_view magic("k8s\0", 4);
	if (std::string_view(body).substr(0, 4) != magic)
		return {};
	// runtime.Unknown: 1 type, 2 the object; of the object: 2 spec.
	Fields envelope = read_message(std::string_view(body).substr(4));
	Fields spec = read_message(read_message(envelope[2])[2]);
	J out = J::object();
	if (spec.count(1))
		out.set("resourceAttributes",
			strings(spec[1], {"namespace", "verb", "group", "version", "resource", "subresource", "name"}));
	if (spec.count(2))
		out.set("nonResourceAttributes", strings(spec[2], {"path", "verb"}));
	return J::make("spec", out);
}

} // namespace kubesim
