// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/yaml.h"

#include <map>
#include <yaml.h>

#include "lib/base/text.h"

namespace sk8 {

namespace {

constexpr std::size_t max_nodes = 100000;

// libyaml is C without callbacks here: nothing is thrown through it.
struct Event {
	yaml_event_t e{};
	Event() = default;
	Event(const Event &) = delete;
	Event &operator=(const Event &) = delete;
	~Event() { yaml_event_delete(&e); }
	int line() const { return static_cast<int>(e.start_mark.line) + 1; }
};

struct Parser {
	yaml_parser_t p{};
	Parser()
	{
		if (!yaml_parser_initialize(&p))
			throw std::bad_alloc();
	}
	Parser(const Parser &) = delete;
	Parser &operator=(const Parser &) = delete;
	~Parser() { yaml_parser_delete(&p); }
};

// Functions return false when reading cannot go on; problems says why.
class Builder {
public:
	Builder(std::string_view text, std::vector<YamlProblem> &problems) : problems_(problems)
	{
		// Told the encoding, libyaml takes a byte order mark for a character.
		if (text.starts_with("\xef\xbb\xbf"))
			text.remove_prefix(3);
		yaml_parser_set_input_string(
			&parser_.p, reinterpret_cast<const unsigned char *>(text.data()),
			text.size());
		yaml_parser_set_encoding(&parser_.p, YAML_UTF8_ENCODING);
	}

	bool document(YamlNode &root);

private:
	bool next(Event &event);
	bool node(const Event &first, int depth, YamlNode &to);
	bool scalar(const Event &event, YamlNode &to);
	bool sequence(int depth, YamlNode &to);
	bool mapping(int depth, YamlNode &to);
	bool stop(int line, std::string what)
	{
		problems_.push_back({line, std::move(what)});
		return false;
	}

	Parser parser_;
	std::vector<YamlProblem> &problems_;
	std::size_t nodes_ = 0;
};

bool Builder::next(Event &event)
{
	yaml_parser_t &p = parser_.p;
	if (yaml_parser_parse(&p, &event.e))
		return true;
	if (p.error == YAML_MEMORY_ERROR)
		throw std::bad_alloc();
	if (p.error == YAML_READER_ERROR) {
		// The reader counts bytes, not lines, and is ahead of the parser.
		return stop(static_cast<int>(p.mark.line) + 1,
			    strprintf("not YAML: %s after this line", p.problem));
	}
	return stop(static_cast<int>(p.problem_mark.line) + 1,
		    strprintf("not YAML: %s", p.problem ? p.problem : "invalid syntax"));
}

bool Builder::document(YamlNode &root)
{
	{
		Event stream, start;
		if (!next(stream) || !next(start))
			return false;
		if (start.e.type == YAML_STREAM_END_EVENT) {
			root.line = 1;
			return true; // empty: a null scalar
		}
	}
	Event first, end, after;
	if (!next(first) || !node(first, 1, root) || !next(end) || !next(after))
		return false;
	if (after.e.type != YAML_STREAM_END_EVENT)
		return stop(after.line(), "a second document begins here, write only one");
	return true;
}

bool Builder::node(const Event &first, int depth, YamlNode &to)
{
	to.line = first.line();
	if (depth > max_yaml_depth)
		return stop(to.line, strprintf("nested more than %d levels deep", max_yaml_depth));
	if (++nodes_ > max_nodes)
		return stop(to.line, strprintf("more than %zu values", max_nodes));
	const yaml_char_t *tag = nullptr;
	switch (first.e.type) {
	case YAML_ALIAS_EVENT:
		return stop(to.line, "an alias (*name) is not supported, write the value again");
	case YAML_SCALAR_EVENT:
		return scalar(first, to);
	case YAML_SEQUENCE_START_EVENT:
		tag = first.e.data.sequence_start.tag;
		break;
	case YAML_MAPPING_START_EVENT:
		tag = first.e.data.mapping_start.tag;
		break;
	default:
		return stop(to.line, "a value is missing");
	}
	if (tag)
		return stop(to.line, "a tag (!name) is not supported, leave it out");
	return first.e.type == YAML_SEQUENCE_START_EVENT ? sequence(depth, to) : mapping(depth, to);
}

bool Builder::scalar(const Event &event, YamlNode &to)
{
	const auto &s = event.e.data.scalar;
	const std::string_view tag = s.tag ? reinterpret_cast<const char *>(s.tag) : "";
	if (!tag.empty() && tag != "!" && tag != YAML_STR_TAG)
		return stop(to.line, "a tag (!name) is not supported, leave it out");
	to.kind = YamlNode::Kind::scalar;
	to.text.assign(reinterpret_cast<const char *>(s.value), s.length);
	to.plain = s.style == YAML_PLAIN_SCALAR_STYLE && tag.empty();
	return true;
}

bool Builder::sequence(int depth, YamlNode &to)
{
	to.kind = YamlNode::Kind::sequence;
	for (;;) {
		Event event;
		if (!next(event))
			return false;
		if (event.e.type == YAML_SEQUENCE_END_EVENT)
			return true;
		if (!node(event, depth + 1, to.items.emplace_back()))
			return false;
	}
}

bool Builder::mapping(int depth, YamlNode &to)
{
	to.kind = YamlNode::Kind::mapping;
	std::map<std::string, int> seen; // key -> its line
	for (;;) {
		Event key, value;
		if (!next(key))
			return false;
		if (key.e.type == YAML_MAPPING_END_EVENT)
			return true;
		if (key.e.type != YAML_SCALAR_EVENT)
			return stop(key.line(), "a key must be a plain word");
		YamlNode name;
		name.line = key.line();
		if (!scalar(key, name) || !next(value))
			return false;
		const auto [earlier, fresh] = seen.emplace(name.text, name.line);
		if (!fresh)
			problems_.push_back({name.line, strprintf("the key \"%s\" is already given in line "
								  "%d, remove one of the two",
								  one_line(name.text, 64).c_str(),
								  earlier->second)});
		YamlMember &member = to.members.emplace_back();
		member.key = std::move(name.text);
		member.line = name.line;
		if (!node(value, depth + 1, member.value))
			return false;
	}
}

} // namespace

bool YamlNode::is_null() const
{
	return is_scalar() && plain && (text.empty() || text == "~" || text == "null");
}

const YamlNode *YamlNode::find(std::string_view key) const
{
	for (const YamlMember &member : members)
		if (member.key == key)
			return &member.value;
	return nullptr;
}

std::string_view YamlNode::str(std::string_view key, std::string_view otherwise) const
{
	const YamlNode *value = find(key);
	return value && value->is_scalar() && !value->is_null() ? value->text : otherwise;
}

std::optional<YamlNode> parse_yaml(std::string_view text, std::vector<YamlProblem> &problems)
{
	if (text.size() > max_yaml_bytes) {
		problems.push_back(
			{0, strprintf("larger than %zu KiB", max_yaml_bytes / 1024)});
		return {};
	}
	const std::size_t before = problems.size();
	YamlNode root;
	if (!Builder(text, problems).document(root) || problems.size() != before)
		return {};
	return root;
}

Result<YamlNode> parse_yaml(std::string_view text, const std::string &file)
{
	std::vector<YamlProblem> problems;
	std::optional<YamlNode> root = parse_yaml(text, problems);
	if (root)
		return std::move(*root);
	const YamlProblem &first = problems.front();
	if (!first.line)
		return Error{strprintf("%s: %s", file.c_str(), first.what.c_str())};
	return Error{strprintf("%s:%d: %s", file.c_str(), first.line, first.what.c_str())};
}

} // namespace sk8
