// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Configuration by tables. A table of rows binds keys of a YAML file to members of
// a struct; the same table reads the file, checks it, says what is wrong and what
// would be right, and describes itself for the man page.
//
//	struct NodeSettings {
//		std::string selector;
//		Sharing sharing = Sharing::mixed;       // defaults live in the struct
//		Millis ready_grace = std::chrono::seconds(40);
//	};
//	const Schema<NodeSettings> &node_schema()
//	{
//		// Leaked on purpose: no static destructors.
//		static const auto *schema = new Schema<NodeSettings>{
//			field("selector", &NodeSettings::selector, "Label selector of ..."),
//			one_of("sharing", &NodeSettings::sharing,
//			       {{"mixed", Sharing::mixed}, {"dedicated", Sharing::dedicated}},
//			       "Who may ..."),
//			field("readyGrace", &NodeSettings::ready_grace, "How long ...")
//				.range(std::chrono::seconds(1), std::chrono::hours(1)),
//		};
//		return *schema;
//	}
//	... object("nodes", &ClusterSettings::nodes, node_schema(), "..."),
//	... list("clusters", &Settings::clusters, cluster_schema(), "...").not_empty(),
//
// Member types of field(): std::string, bool, integers up to 64 bits, Millis
// ("40s", "1h30m", "250ms"), std::vector<std::string>,
// std::map<std::string, std::string>, and std::optional of the scalars (unset =
// absent from the file). Others: milli_cpu(), bytes(), one_of(), object(), list().
#ifndef SK8_BASE_CONFIG_H
#define SK8_BASE_CONFIG_H

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <type_traits>
#include <utility>
#include <vector>

#include "lib/base/config_codec.h"
#include "lib/base/config_place.h"
#include "lib/base/result.h"

namespace sk8 {

// One key of S, with a value of type T; made by field() and its sisters below.
template <class S, class T>
class Field {
public:
	using Value = typename config_detail::Unwrap<T>::type;

	Field(std::string key, T S::*member, Codec<T> codec, std::string help)
		: key_(std::move(key)), help_(std::move(help)), member_(member),
		  codec_(std::move(codec))
	{
	}

	// The key must be there.
	Field &required()
	{
		required_ = true;
		return *this;
	}
	// A change takes effect only after a restart.
	Field &fixed()
	{
		reloadable_ = false;
		return *this;
	}
	// What the man page says instead of the member's initial value.
	Field &default_text(std::string text)
	{
		default_text_ = std::move(text);
		return *this;
	}
	// Both ends belong to it. Replaces "any integer" in the type's description.
	Field &range(Value min, Value max)
		requires std::totally_ordered<Value>
	{
		const auto show = [codec = codec_](Value v) { return codec.show(T(std::move(v))); };
		const std::string text = show(min) + " to " + show(max);
		codec_.type = codec_.type.substr(0, codec_.type.find(',')) + ", " + text;
		return check([min, max, text](const T &value) -> std::string {
			const Value *v = nullptr;
			if constexpr (std::is_same_v<T, Value>)
				v = &value;
			else if (value)
				v = &*value;
			return !v || (*v >= min && *v <= max) ? "" : "is out of range, use " + text;
		});
	}
	Field &not_empty()
		requires requires(const T &t) { t.empty(); }
	{
		return check([](const T &value) -> std::string {
			return value.empty() ? "must not be empty" : "";
		});
	}
	// problem(value) returns what is wrong and what would be right ("is ..., use
	// ..."; the value is put before it), or an empty text.
	Field &check(std::function<std::string(const T &)> problem)
	{
		codec_.read = [read = std::move(codec_.read),
			       problem = std::move(problem)](const Place &place, T &to) {
			if (!read(place, to))
				return false;
			const std::string what = problem(to);
			if (what.empty())
				return true;
			place.error(place.node().is_scalar() ? quoted_value(place.node()) + " " + what
							     : what);
			return false;
		};
		return *this;
	}

private:
	template <class>
	friend class Row;
	std::string key_, help_;
	std::optional<std::string> default_text_;
	bool required_ = false, reloadable_ = true;
	T S::*member_;
	Codec<T> codec_;
};

// A Field whose value type is forgotten.
template <class S>
class Row {
public:
	template <class T>
	Row(const Field<S, T> &f)
		: key(f.key_), required(f.required_),
		  read([m = f.member_, codec = f.codec_](const Place &place, S &to) {
			  T value{};
			  if (codec.read(place, value))
				  to.*m = std::move(value);
		  }),
		  describe([f](const std::string &path, std::vector<FieldDoc> &out) {
			  out.push_back({path, f.codec_.type,
					 f.default_text_ ? *f.default_text_
							 : f.codec_.show(S{}.*f.member_),
					 f.help_, f.required_, f.reloadable_,
					 static_cast<bool>(f.codec_.describe)});
			  if (f.codec_.describe)
				  f.codec_.describe(path, out);
		  }),
		  compare([f](const S &a, const S &b, const std::string &path,
			      std::vector<std::string> &out) {
			  const T &x = a.*f.member_, &y = b.*f.member_;
			  if (!f.reloadable_ && f.codec_.show(x) != f.codec_.show(y))
				  out.push_back(path);
			  else if (f.codec_.compare)
				  f.codec_.compare(x, y, path, out);
		  })
	{
	}

	std::string key;
	bool required;
	std::function<void(const Place &, S &)> read;
	std::function<void(const std::string &path, std::vector<FieldDoc> &)> describe;
	std::function<void(const S &, const S &, const std::string &path,
			   std::vector<std::string> &)> compare;
};

// The table of a struct. Rows are described in this order; must outlive what refers
// to it (make it in a function, leaked).
template <class S>
class Schema {
public:
	Schema(std::initializer_list<Row<S>> rows) : rows_(rows)
	{
		for (const Row<S> &row : rows_) {
			keys_.push_back(row.key);
			required_.push_back(row.required);
		}
	}

	// Rules between members; runs only if all members could be read.
	// place.error("key", "what is wrong, what would be right").
	Schema &check(std::function<void(const S &, const Place &)> rule)
	{
		rules_.push_back(std::move(rule));
		return *this;
	}

	// What follows from other members, if nobody said it; runs before the rules.
	Schema &complete(std::function<void(S &)> f)
	{
		completions_.push_back(std::move(f));
		return *this;
	}

	// False if there was any problem (to is then unspecified).
	bool read(const Place &place, S &to) const
	{
		const std::size_t before = config_detail::problem_count(place);
		if (!config_detail::read_members(
			    place, keys_, required_,
			    [&](std::size_t i, const Place &at) { rows_[i].read(at, to); }))
			return false;
		if (config_detail::problem_count(place) == before) {
			for (const auto &f : completions_)
				f(to);
			for (const auto &rule : rules_)
				rule(to, place);
		}
		return config_detail::problem_count(place) == before;
	}

	void describe(const std::string &prefix, std::vector<FieldDoc> &out) const
	{
		for (const Row<S> &row : rows_)
			row.describe(prefix.empty() ? row.key : prefix + "." + row.key, out);
	}
	void compare(const S &a, const S &b, const std::string &prefix,
		     std::vector<std::string> &out) const
	{
		for (const Row<S> &row : rows_)
			row.compare(a, b, prefix.empty() ? row.key : prefix + "." + row.key, out);
	}

private:
	std::vector<Row<S>> rows_;
	std::vector<std::string> keys_;
	std::vector<bool> required_;
	std::vector<std::function<void(S &)>> completions_;
	std::vector<std::function<void(const S &, const Place &)>> rules_;
};

template <class S, class T>
Field<S, T> field(std::string key, T S::*member, std::string help)
{
	return {std::move(key), member, config_detail::codec_for<T>(), std::move(help)};
}

// A CPU quantity ("2", "250m") in thousandths of a CPU, not negative.
template <class S>
Field<S, std::int64_t> milli_cpu(std::string key, std::int64_t S::*member, std::string help)
{
	return {std::move(key), member, milli_cpu_codec(), std::move(help)};
}

// A memory quantity ("512Mi", "4G") in bytes, not negative.
template <class S>
Field<S, std::int64_t> bytes(std::string key, std::int64_t S::*member, std::string help)
{
	return {std::move(key), member, bytes_codec(), std::move(help)};
}

// One of a few words.
template <class S, class E>
Field<S, E> one_of(std::string key, E S::*member,
		   std::initializer_list<std::pair<const char *, std::type_identity_t<E>>> words,
		   std::string help)
{
	std::vector<std::pair<std::string, E>> table;
	std::string all;
	for (const auto &[word, value] : words) {
		table.emplace_back(word, value);
		all += (all.empty() ? "" : ", ") + table.back().first;
	}
	const auto read = [table, all](const Place &place, E &to) {
		if (place.node().is_scalar())
			for (const auto &[word, value] : table)
				if (place.node().text == word) {
					to = value;
					return true;
				}
		place.error(quoted_value(place.node()) + " is not known, use one of " + all);
		return false;
	};
	const auto show = [table](const E &wanted) -> std::string {
		for (const auto &[word, value] : table)
			if (value == wanted)
				return word;
		return {};
	};
	return {std::move(key), member, Codec<E>{"one of " + all, read, show, {}, {}},
		std::move(help)};
}

// A map with its own table.
template <class S, class E>
Field<S, E> object(std::string key, E S::*member, const Schema<E> &schema, std::string help)
{
	const Schema<E> *s = &schema;
	return {std::move(key), member,
		Codec<E>{"map",
			 [s](const Place &place, E &to) { return s->read(place, to); },
			 [](const E &) { return std::string(); },
			 [s](const std::string &path, std::vector<FieldDoc> &out) {
				 s->describe(path, out);
			 },
			 [s](const E &a, const E &b, const std::string &path,
			     std::vector<std::string> &out) { s->compare(a, b, path, out); }},
		std::move(help)};
}

// A list of maps, each with the table.
template <class S, class E>
Field<S, std::vector<E>> list(std::string key, std::vector<E> S::*member, const Schema<E> &schema,
			      std::string help, std::size_t max_items = 10000)
{
	const Schema<E> *s = &schema;
	using V = std::vector<E>;
	return {std::move(key), member,
		Codec<V>{"list of maps",
			 [s, max_items](const Place &place, V &to) {
				 bool ok = true;
				 ok &= config_detail::read_items(
					 place, max_items, [&](const Place &item) {
						 ok &= s->read(item, to.emplace_back());
					 });
				 return ok;
			 },
			 // Enough to see that entries came or went.
			 [](const V &v) {
				 return v.empty() ? std::string()
						  : std::to_string(v.size()) + " entries";
			 },
			 [s](const std::string &path, std::vector<FieldDoc> &out) {
				 s->describe(path + "[]", out);
			 },
			 [s](const V &a, const V &b, const std::string &path,
			     std::vector<std::string> &out) {
				 for (std::size_t i = 0; i < a.size() && i < b.size(); i++)
					 s->compare(a[i], b[i],
						    path + "[" + std::to_string(i) + "]", out);
			 }},
		std::move(help)};
}

namespace config_detail {

// Parses text and calls read with the root; false if there is any problem.
bool parse_root(std::string_view text, Problems &problems,
		const std::function<void(const Place &)> &read);
} // namespace config_detail

// Reads text into a fresh S. On any problem into keeps its value and false comes back;
// all problems are collected. An empty file is an empty map.
template <class S>
bool parse_config(std::string_view text, const Schema<S> &schema, S &into, Problems &problems)
{
	S fresh{};
	if (!config_detail::parse_root(text, problems,
				       [&](const Place &root) { schema.read(root, fresh); }))
		return false;
	into = std::move(fresh);
	return true;
}

// The same, or all problems, one a line.
template <class S>
Result<S> parse_config(std::string_view text, const std::string &file_name, const Schema<S> &schema)
{
	Problems problems(file_name);
	S out;
	if (!parse_config(text, schema, out, problems))
		return Error{problems.text()};
	return out;
}

// The text for parse_config() of a file that load_config() would read. Blocks on the disk.
Result<std::string> load_config_text(const std::string &path, uid_t owner);

// The same from a file, which must belong to root or owner and be writable by no one
// else. Blocks on the disk.
template <class S>
Result<S> load_config(const std::string &path, uid_t owner, const Schema<S> &schema)
{
	const Result<std::string> text = load_config_text(path, owner);
	if (!text)
		return text.error();
	return parse_config(*text, path, schema);
}

// All rows in order, for the man page.
template <class S>
std::vector<FieldDoc> describe(const Schema<S> &schema)
{
	std::vector<FieldDoc> out;
	schema.describe({}, out);
	return out;
}

// Paths of fixed() keys that differ: a reload must tell that they need a restart.
template <class S>
std::vector<std::string> needs_restart(const Schema<S> &schema, const S &now, const S &wanted)
{
	std::vector<std::string> out;
	schema.compare(now, wanted, {}, out);
	return out;
}

} // namespace sk8

#endif
