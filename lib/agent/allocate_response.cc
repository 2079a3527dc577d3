// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/allocate_response.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "lib/base/text.h"

namespace sk8::agent {

// ---- protobuf, as far as such a message has it (protobuf.dev/programming-guides/encoding) ----

namespace {

struct Field {
	std::uint64_t number = 0;
	std::string_view bytes; // empty also of what has no bytes
};

// The fields of one message, one after the other. Nothing is copied, and nothing calls itself.
class Fields {
public:
	explicit Fields(std::string_view message) : rest_(message) {}
	// Nothing: it is over, or broken.
	std::optional<Field> next();
	bool broken() const { return broken_; }

private:
	std::optional<std::uint64_t> varint();
	std::optional<std::string_view> take(std::uint64_t size);
	std::optional<std::string_view> value(unsigned wire_type);

	std::string_view rest_;
	bool broken_ = false;
};

} // namespace

std::optional<std::uint64_t> Fields::varint()
{
	static constexpr unsigned longest = 10; // bytes
	std::uint64_t out = 0;
	for (unsigned i = 0; i < longest && i < rest_.size(); i++) {
		const auto byte = static_cast<unsigned char>(rest_[i]);
		if (i == longest - 1 && byte > 1) // more than 64 bits
			return std::nullopt;
		out |= std::uint64_t{byte & 0x7fU} << (7 * i);
		if (!(byte & 0x80U)) {
			rest_.remove_prefix(i + 1);
			return out;
		}
	}
	return std::nullopt;
}

std::optional<std::string_view> Fields::take(std::uint64_t size)
{
	if (size > rest_.size())
		return std::nullopt;
	const std::string_view out = rest_.substr(0, static_cast<std::size_t>(size));
	rest_.remove_prefix(out.size());
	return out;
}

// Groups (3, 4) have been gone since proto3: what has some is none of these messages.
std::optional<std::string_view> Fields::value(unsigned wire_type)
{
	const auto number = wire_type == 0 || wire_type == 2 ? varint() : std::optional<std::uint64_t>(0);
	if (!number)
		return std::nullopt;
	switch (wire_type) {
	case 0: return std::string_view();
	case 1: return take(8);
	case 2: return take(*number);
	case 5: return take(4);
	default: return std::nullopt;
	}
}

std::optional<Field> Fields::next()
{
	if (broken_ || rest_.empty())
		return std::nullopt;
	const auto tag = varint();
	const auto bytes = tag ? value(*tag & 7) : std::nullopt;
	if (!bytes || *tag >> 3 == 0) {
		broken_ = true;
		return std::nullopt;
	}
	return Field{*tag >> 3, *bytes};
}

// ---- what may be given ----

// Those of plugins/spank/environment.c, and what makes programs load or run something.
static constexpr std::string_view kept[] = {"HOME", "USER", "LOGNAME", "SHELL", "PWD", "OLDPWD", "HOSTNAME", "TMPDIR", "TERM", "DISPLAY",
					    "XAUTHORITY", "SHLVL", "_", "IFS", "ENV", "PS4", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND",
					    "EDITOR", "PAGER", "NODE_OPTIONS", "JAVA_TOOL_OPTIONS", "KUBECONFIG"};
static constexpr std::string_view kept_beginnings[] = {"SLURM", "SPANK_", "KUBERNETES_", "PMI", "LD_", "BASH_", "GLIBC_", "MALLOC_",
						       "PYTHON", "PERL", "RUBY", "GIT_", "SSH_"};
static constexpr std::string_view kept_end = "PATH";
static constexpr std::size_t longest_name = 128, longest_path = 255;

bool may_be_given(std::string_view variable)
{
	static constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
	const bool is_name = !variable.empty() && variable.size() <= longest_name && (variable[0] < '0' || variable[0] > '9') &&
			     variable.find_first_not_of(letters) == variable.npos;
	return is_name && !variable.ends_with(kept_end) && std::ranges::find(kept, variable) == std::end(kept) &&
	       std::ranges::none_of(kept_beginnings, [&](std::string_view begin) { return variable.starts_with(begin); });
}

static bool is_value(std::string_view text)
{
	return text.size() <= max_value && std::ranges::all_of(text, [](unsigned char c) { return c >= ' ' && c != 0x7f; });
}

// "/dev/infiniband/uverbs0"; no way out of /dev, and no ',', for these are told as a list.
static bool is_device_node(std::string_view path)
{
	static constexpr std::string_view begin = "/dev/";
	static constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:+@";
	if (!path.starts_with(begin) || path.size() > longest_path)
		return false;
	path.remove_prefix(begin.size());
	return !path.empty() && std::ranges::all_of(split(path, '/'), [](std::string_view part) {
		return !part.empty() && part != "." && part != ".." && part.find_first_not_of(letters) == part.npos;
	});
}

// ---- the message ----

// envs: an entry of a map is a message with the key as 1 and the value as 2.
static bool read_variable(std::string_view entry, DeviceAnswer &out)
{
	std::string_view name, value;
	Fields fields(entry);
	while (const auto field = fields.next()) {
		if (field->number == 1)
			name = field->bytes;
		else if (field->number == 2)
			value = field->bytes;
	}
	if (!fields.broken() && may_be_given(name) && is_value(value) && out.variables.size() < max_variables)
		out.variables.emplace(name, value);
	return !fields.broken();
}

// devices: DeviceSpec has container_path, host_path and permissions.
static bool read_node(std::string_view device, DeviceAnswer &out)
{
	std::string_view path;
	Fields fields(device);
	while (const auto field = fields.next())
		if (field->number == 2)
			path = field->bytes;
	if (!fields.broken() && is_device_node(path) && out.nodes.size() < max_device_nodes)
		out.nodes.emplace(path);
	return !fields.broken();
}

DeviceAnswer parse_allocate_response(std::string_view base64)
{
	const auto message = base64_decode(base64, max_answer);
	if (!message)
		return {};
	DeviceAnswer out;
	bool good = true;
	Fields fields(*message);
	while (const auto field = good ? fields.next() : std::nullopt) {
		if (field->number == 1)
			good = read_variable(field->bytes, out);
		else if (field->number == 3)
			good = read_node(field->bytes, out);
	}
	return good && !fields.broken() ? out : DeviceAnswer();
}

} // namespace sk8::agent
