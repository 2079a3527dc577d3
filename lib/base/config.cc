// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/config.h"

#include <algorithm>

#include "lib/base/file.h"
#include "lib/base/quantity.h"
#include "lib/base/text.h"

namespace sk8 {

namespace {

constexpr std::size_t max_problems = 100;
constexpr std::size_t max_list_items = 10000;

const char *kind_name(const YamlNode &node)
{
	if (node.is_null())
		return "nothing";
	return node.is_scalar() ? "text" : node.is_sequence() ? "a list" : "a map";
}

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

// Lower case without '-' and '_': scheduler_names is schedulerNames.
std::string normal_name(std::string_view name)
{
	std::string s;
	for (const char c : name) {
		if (c >= 'A' && c <= 'Z')
			s += static_cast<char>(c - 'A' + 'a');
		else if (c != '-' && c != '_')
			s += c;
	}
	return s;
}

// Insertions, removals, replacements and swaps of neighbours that make a from b.
std::size_t edit_distance(const std::string &a, const std::string &b)
{
	std::vector<std::vector<std::size_t>> d(a.size() + 1,
						std::vector<std::size_t>(b.size() + 1));
	for (std::size_t i = 0; i <= a.size(); i++) {
		for (std::size_t j = 0; j <= b.size(); j++) {
			if (i == 0 || j == 0) {
				d[i][j] = i + j;
				continue;
			}
			d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1,
					    d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[a.size()][b.size()];
}

} // namespace

void Problems::add(int line, std::string_view path, std::string_view what)
{
	if (found_.size() >= max_problems) {
		dropped_++;
		return;
	}
	std::string text = line > 0 ? strprintf("%s:%d: ", file_.c_str(), line) : file_ + ": ";
	if (!path.empty())
		text.append(path).append(": ");
	found_.push_back({line, text.append(what)});
}

std::vector<std::string> Problems::lines() const
{
	std::vector<Found> sorted = found_;
	std::stable_sort(sorted.begin(), sorted.end(),
			 [](const Found &a, const Found &b) { return a.line < b.line; });
	std::vector<std::string> texts;
	for (Found &found : sorted)
		texts.push_back(std::move(found.text));
	if (dropped_)
		texts.push_back(strprintf("%s: and %zu more problems", file_.c_str(), dropped_));
	return texts;
}

void Place::error(std::string_view key, std::string_view what) const
{
	for (const YamlMember &m : node_->members)
		if (m.key == key)
			return member(m).error(what);
	error(what);
}

Place Place::member(const YamlMember &member) const
{
	// A map or list begins in the line after its key: the key is what people look for.
	const bool inside = member.value.is_scalar() && !member.value.is_null();
	const std::string key = one_line(member.key, 64);
	return {member.value, inside ? member.value.line : member.line,
		path_.empty() ? key : path_ + "." + key, *problems_};
}

Place Place::item(std::size_t index) const
{
	const YamlNode &value = node_->items[index];
	return {value, value.line, strprintf("%s[%zu]", path_.c_str(), index), *problems_};
}

std::string nearest_name(std::string_view text, const std::vector<std::string> &keys)
{
	if (text.size() > 64) // no key is that long, and the distance costs length squared
		return {};
	const std::string wanted = normal_name(text);
	std::string best;
	std::size_t best_distance = std::max<std::size_t>(1, wanted.size() / 3) + 1;
	for (const std::string &key : keys) {
		const std::size_t distance = edit_distance(wanted, normal_name(key));
		if (distance < best_distance) {
			best_distance = distance;
			best = key;
		}
	}
	return best;
}

std::string quoted_value(const YamlNode &node)
{
	if (!node.is_scalar() || node.is_null())
		return kind_name(node);
	return "\"" + one_line(node.text, 64) + "\"";
}

Result<Millis> parse_duration(std::string_view text)
{
	static constexpr struct {
		std::string_view name;
		std::int64_t millis;
	} units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
	const auto refuse = [&](const char *why) {
		return Error{strprintf("\"%s\" %s", one_line(text, 64).c_str(), why)};
	};
	constexpr const char *wrong =
		"is no duration, write numbers with ms, s, m, h or d, for example 40s or 1h30m";

	if (text == "0")
		return Millis(0);
	std::int64_t total = 0;
	std::string_view rest = text;
	if (rest.empty())
		return refuse(wrong);
	while (!rest.empty()) {
		const std::string_view number =
			rest.substr(0, std::min(rest.find_first_not_of("0123456789"), rest.size()));
		rest.remove_prefix(number.size());
		const std::string_view name =
			rest.substr(0, std::min(rest.find_first_of("0123456789"), rest.size()));
		rest.remove_prefix(name.size());
		const auto unit = std::find_if(std::begin(units), std::end(units),
					       [&](const auto &u) { return u.name == name; });
		if (number.empty() || unit == std::end(units))
			return refuse(name.empty() && number == text
					      ? "has no unit, write ms, s, m, h or d after it"
					      : wrong);
		const std::optional<std::int64_t> n = parse_integer(number);
		std::int64_t part = 0;
		if (!n || __builtin_mul_overflow(*n, unit->millis, &part) ||
		    __builtin_add_overflow(total, part, &total))
			return refuse("is too long");
	}
	return Millis(total);
}

std::string format_duration(Millis duration)
{
	static constexpr struct {
		const char *name;
		std::int64_t millis;
	} units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
	std::string s;
	std::int64_t rest = duration.count();
	for (const auto &unit : units) {
		if (rest / unit.millis > 0)
			s += std::to_string(rest / unit.millis) + unit.name;
		rest %= unit.millis;
	}
	return s.empty() ? "0s" : s;
}

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

namespace config_detail {

bool read_members(const Place &place, const std::vector<std::string> &keys,
		  const std::vector<bool> &required,
		  const std::function<void(std::size_t, const Place &)> &read)
{
	const YamlNode &node = place.node();
	if (!node.is_mapping() && !node.is_null()) {
		place.error(strprintf("is %s, write a map (key: value)", kind_name(node)));
		return false;
	}
	std::vector<bool> given(keys.size());
	for (const YamlMember &member : node.members) {
		const auto at = std::find(keys.begin(), keys.end(), member.key);
		if (at != keys.end()) {
			const auto i = static_cast<std::size_t>(at - keys.begin());
			given[i] = true;
			read(i, place.member(member));
			continue;
		}
		const std::string nearest = nearest_name(member.key, keys);
		place.member(member).error(nearest.empty()
						   ? "is no known key, known are " + join(keys, ", ")
						   : "is no known key, did you mean " + nearest + "?");
	}
	for (std::size_t i = 0; i < keys.size(); i++)
		if (required[i] && !given[i])
			place.error("the key " + keys[i] + " is missing");
	return true;
}

bool read_items(const Place &place, std::size_t max_items,
		const std::function<void(const Place &)> &read)
{
	const YamlNode &node = place.node();
	if (node.is_null()) // all its items are commented out
		return true;
	if (!node.is_sequence()) {
		place.error(strprintf("is %s, write a list ([a, b] or lines that begin with -)",
				      kind_name(node)));
		return false;
	}
	if (node.items.size() > max_items) {
		place.error(strprintf("has %zu entries, at most %zu are allowed", node.items.size(),
				      max_items));
		return false;
	}
	for (std::size_t i = 0; i < node.items.size(); i++)
		read(place.item(i));
	return true;
}

std::size_t problem_count(const Place &place)
{
	return place.problems().size();
}

bool parse_root(std::string_view text, Problems &problems,
		const std::function<void(const Place &)> &read)
{
	const std::size_t before = problems.size();
	std::vector<YamlProblem> found;
	const std::optional<YamlNode> root = parse_yaml(text, found);
	for (const YamlProblem &problem : found)
		problems.add(problem.line, {}, problem.what);
	if (root)
		read(Place(*root, root->line, {}, problems));
	return root && problems.size() == before;
}

std::optional<std::string> load_text(const std::string &path, uid_t owner, Problems &problems)
{
	Result<std::string> text = read_file(path, max_yaml_bytes, Trust::owned, owner);
	if (text)
		return std::move(*text);
	problems.add(0, {}, text.error().message);
	return {};
}

} // namespace config_detail

} // namespace sk8
