// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/dra_selector.h"

#include <algorithm>
#include <array>
#include <compare>
#include <limits>
#include <optional>
#include <utility>

#include "lib/base/quantity.h"
#include "lib/base/text.h"
#include "lib/core/dra_selector_node.h"

namespace sk8::core {

namespace {

using Node = SelectorNode;
using Kind = SelectorNode::Kind;
using Value = SelectorValue;
using Outcome = Result<Value>;

Outcome value(auto v)
{
	return Value{std::move(v)};
}

// ---- versions ----

// https://semver.org: 1.2.3-rc.1+build
struct Semver {
	std::array<std::int64_t, 3> numbers{};
	std::vector<std::string> before; // of a pre-release
};

std::optional<Semver> parse_semver(std::string_view text)
{
	Semver out;
	text = text.substr(0, text.find('+'));
	const auto dash = text.find('-');
	const auto numbers = split(text.substr(0, dash), '.');
	if (numbers.size() != 3)
		return std::nullopt;
	for (std::size_t i = 0; i < 3; i++) {
		const auto n = parse_integer(numbers[i], 0);
		if (!n)
			return std::nullopt;
		out.numbers[i] = *n;
	}
	if (dash != text.npos)
		for (const auto part : split(text.substr(dash + 1), '.'))
			out.before.emplace_back(part);
	return out;
}

std::strong_ordering compare_parts(const std::string &a, const std::string &b)
{
	const auto x = parse_integer(a, 0), y = parse_integer(b, 0);
	if (x && y)
		return *x <=> *y;
	if (x || y)
		return x ? std::strong_ordering::less : std::strong_ordering::greater;
	return a <=> b;
}

std::strong_ordering compare(const Semver &a, const Semver &b)
{
	if (a.numbers != b.numbers)
		return a.numbers <=> b.numbers;
	if (a.before.empty() || b.before.empty())
		return b.before.size() <=> a.before.size();
	for (std::size_t i = 0; i < std::min(a.before.size(), b.before.size()); i++)
		if (const auto c = compare_parts(a.before[i], b.before[i]); c != 0)
			return c;
	return a.before.size() <=> b.before.size();
}

// ---- functions ----

const std::string *text_of(const Value &v)
{
	return std::get_if<std::string>(&v.is);
}

// Quantities, or versions. nullopt: not both of one kind.
std::optional<std::strong_ordering> order(const Value &a, const Value &b)
{
	if (const auto *x = std::get_if<SelectorQuantity>(&a.is))
		if (const auto *y = std::get_if<SelectorQuantity>(&b.is))
			return x->milli <=> y->milli;
	const auto *x = std::get_if<kube::Version>(&a.is), *y = std::get_if<kube::Version>(&b.is);
	const auto v = x ? parse_semver(x->text) : std::nullopt, w = y ? parse_semver(y->text) : std::nullopt;
	return v && w ? std::optional(compare(*v, *w)) : std::nullopt;
}

Outcome no_overload()
{
	return Error{"no such overload"};
}

Outcome ordered(const std::vector<Value> &args, auto f)
{
	const auto o = order(args[0], args[1]);
	return o ? value(f(*o)) : no_overload();
}

Outcome of_texts(const std::vector<Value> &args, auto f)
{
	const std::string *a = text_of(args[0]), *b = text_of(args.back());
	return a && b ? value(f(*a, *b)) : no_overload();
}

Outcome part_of_version(const std::vector<Value> &args, std::size_t part)
{
	const auto *version = std::get_if<kube::Version>(&args[0].is);
	const auto semver = version ? parse_semver(version->text) : std::nullopt;
	return semver ? value(semver->numbers[part]) : no_overload();
}

std::string in_case(std::string text, char from, char to, char first)
{
	for (char &c : text)
		if (c >= from && c <= to)
			c = static_cast<char>(c - from + first);
	return text;
}

Outcome quantity_of(const Value &v)
{
	const std::string *text = text_of(v);
	const auto milli = text ? parse_milli(*text) : Result<std::int64_t>(Error{});
	return milli ? value(SelectorQuantity{*milli}) : Outcome(Error{"quantity() of what is none"});
}

Outcome semver_of(const Value &v)
{
	const std::string *text = text_of(v);
	return text && parse_semver(*text) ? value(kube::Version{*text}) : Outcome(Error{"semver() of what is none"});
}

Outcome size_of(const Value &v)
{
	if (const auto *list = std::get_if<SelectorList>(&v.is))
		return value(static_cast<std::int64_t>(list->size()));
	const std::string *text = text_of(v); // characters, not bytes
	return text ? value(static_cast<std::int64_t>(std::ranges::count_if(*text, [](unsigned char c) { return (c & 0xc0) != 0x80; })))
		    : no_overload();
}

struct Function {
	std::string_view name;
	bool method;
	std::size_t args; // without the receiver
	Outcome (*call)(const std::vector<Value> &args); // the receiver is the first
};

using Args = const std::vector<Value> &;

constexpr Function functions[] = {
	{"quantity", false, 1, [](Args a) { return quantity_of(a[0]); }},
	{"semver", false, 1, [](Args a) { return semver_of(a[0]); }},
	{"size", false, 1, [](Args a) { return size_of(a[0]); }},
	{"size", true, 0, [](Args a) { return size_of(a[0]); }},
	{"startsWith", true, 1, [](Args a) { return of_texts(a, [](auto &x, auto &y) { return x.starts_with(y); }); }},
	{"endsWith", true, 1, [](Args a) { return of_texts(a, [](auto &x, auto &y) { return x.ends_with(y); }); }},
	{"contains", true, 1, [](Args a) { return of_texts(a, [](auto &x, auto &y) { return x.find(y) != x.npos; }); }},
	{"lowerAscii", true, 0, [](Args a) { return of_texts(a, [](auto &x, auto &) { return in_case(x, 'A', 'Z', 'a'); }); }},
	{"upperAscii", true, 0, [](Args a) { return of_texts(a, [](auto &x, auto &) { return in_case(x, 'a', 'z', 'A'); }); }},
	{"compareTo", true, 1, [](Args a) { return ordered(a, [](auto o) { return std::int64_t{o > 0} - std::int64_t{o < 0}; }); }},
	{"isGreaterThan", true, 1, [](Args a) { return ordered(a, [](auto o) { return o > 0; }); }},
	{"isLessThan", true, 1, [](Args a) { return ordered(a, [](auto o) { return o < 0; }); }},
	{"major", true, 0, [](Args a) { return part_of_version(a, 0); }},
	{"minor", true, 0, [](Args a) { return part_of_version(a, 1); }},
	{"patch", true, 0, [](Args a) { return part_of_version(a, 2); }},
};

const Function *find_function(const std::string &name, bool method, std::size_t args)
{
	const auto *f = std::ranges::find_if(functions, [&](const Function &x) { return x.name == name && x.method == method && x.args == args; });
	return f == std::end(functions) ? nullptr : f;
}

// ---- a device ----

// Different kinds are different values (CEL, "Equality": heterogeneous).
bool equal(const Value &a, const Value &b)
{
	if (a.is.index() != b.is.index())
		return false;
	if (const auto o = order(a, b))
		return *o == 0;
	if (const auto *list = std::get_if<SelectorList>(&a.is))
		return std::ranges::equal(*list, std::get<SelectorList>(b.is), equal);
	const auto same = [&]<class T>(T) { return std::holds_alternative<T>(a.is) && std::get<T>(a.is) == std::get<T>(b.is); };
	return same(false) || same(std::int64_t{}) || same(std::string{}) || same(kube::Version{});
}

class Evaluation {
public:
	Evaluation(const std::string &driver, const kube::Device &device, std::size_t allowance)
		: allowance_(std::min(allowance, most_work)), driver_(driver), device_(device)
	{
	}

	std::size_t spent() const { return spent_; }

	Outcome eval(const Node &n)
	{
		if (spent_ > allowance_)
			return Error{"it costs too much"};
		auto v = compute(n);
		spent_ += 1 + (v ? weight(*v) : 0);
		return v;
	}

	Result<bool> truth(const Node &n)
	{
		auto v = eval(n);
		if (!v)
			return v.error();
		if (const bool *b = std::get_if<bool>(&v->is))
			return *b;
		return Error{"no such overload"};
	}

private:
	// Bytes of values that may be made for one device: an expression in which large ones are named again and again would take hours
	// for all. As Kubernetes' own limit of cost, it is far above any that is meant well.
	static constexpr std::size_t most_work = 256 << 10;

	static std::size_t weight(const Value &v)
	{
		std::size_t sum = 0;
		if (const auto *list = std::get_if<SelectorList>(&v.is))
			for (const Value &item : *list)
				sum += 1 + weight(item);
		else if (const std::string *text = text_of(v))
			sum = text->size();
		else if (const auto *version = std::get_if<kube::Version>(&v.is))
			sum = version->text.size();
		return sum;
	}

	Outcome compute(const Node &n)
	{
		switch (n.kind) {
		case Kind::literal:
			return n.value;
		case Kind::name:
			return named(n.name);
		case Kind::member:
			return select(n.args[0], Value{n.name});
		case Kind::index:
			if (auto key = eval(n.args[1]); key)
				return select(n.args[0], *key);
			else
				return key;
		case Kind::list:
			return list(n);
		case Kind::negation:
			return negation(n.args[0]);
		case Kind::minus:
			return minus(n.args[0]);
		case Kind::all:
			return joined(n, false);
		case Kind::any:
			return joined(n, true);
		case Kind::compare:
			return compared(n);
		case Kind::conditional:
			if (auto chosen = truth(n.args[0]); chosen)
				return eval(n.args[*chosen ? 1 : 2]);
			else
				return chosen.error();
		case Kind::has:
			return has(n.args[0]);
		case Kind::bind:
			return bound(n);
		case Kind::call:
			return call(n);
		}
		return no_overload();
	}

	Outcome named(const std::string &name) const
	{
		for (auto it = bound_.rbegin(); it != bound_.rend(); ++it)
			if (it->first == name)
				return it->second;
		return name == "device" ? value(SelectorDevice{}) : Outcome(Error{"undeclared reference to '" + one_line(name, 64) + "'"});
	}

	Outcome select(const Node &from, const Value &key)
	{
		auto of = eval(from);
		const std::string *name = text_of(key);
		if (!of)
			return of;
		if (name && std::holds_alternative<SelectorDevice>(of->is))
			return of_device(*name);
		if (const auto *group = std::get_if<SelectorGroup>(&of->is); name && group)
			return of_group(*group, *name);
		return no_overload();
	}

	Outcome of_device(const std::string &name) const
	{
		if (name == "driver")
			return value(driver_);
		if (name == "attributes" || name == "capacity")
			return value(SelectorGroup{name == "capacity", false, ""});
		if (name == "allowMultipleAllocations")
			return value(false); // such a device is none of ours
		return Error{"undefined field '" + one_line(name, 64) + "'"};
	}

	// A domain that the device has nothing of is an empty map.
	Outcome of_group(const SelectorGroup &group, const std::string &name) const
	{
		if (!group.has_domain)
			return value(SelectorGroup{group.capacity, true, name});
		const std::string full = group.domain + "/" + name;
		if (const auto c = device_.capacity.find(full); group.capacity && c != device_.capacity.end())
			return value(SelectorQuantity{c->second});
		if (const auto a = device_.attributes.find(full); !group.capacity && a != device_.attributes.end())
			return std::visit([](const auto &v) { return value(v); }, a->second);
		return Error{"no such key: " + one_line(full, 128)};
	}

	Outcome has(const Node &member)
	{
		auto of = eval(member.args[0]);
		if (!of)
			return of;
		const auto *group = std::get_if<SelectorGroup>(&of->is);
		return group ? value(contains(*group, member.name)) : no_overload();
	}

	bool contains(const SelectorGroup &group, const std::string &name) const
	{
		return !group.has_domain || of_group(group, name).ok();
	}

	// "domain" in device.attributes: unlike has() it does not take what the device has nothing of for an empty map
	// (cel/compile.go, mapper: only Find() is its own).
	bool has_key(const SelectorGroup &group, const std::string &name) const
	{
		const auto is_of_domain = [&](const auto &entry) { return entry.first.starts_with(name + "/"); };
		if (group.has_domain)
			return contains(group, name);
		return group.capacity ? std::ranges::any_of(device_.capacity, is_of_domain) : std::ranges::any_of(device_.attributes, is_of_domain);
	}

	Outcome list(const Node &n)
	{
		SelectorList out;
		for (const Node &item : n.args) {
			auto v = eval(item);
			if (!v)
				return v;
			if (std::holds_alternative<SelectorList>(v->is)) // cel.bind() could double it again and again
				return Error{"lists of lists are not supported"};
			out.push_back(std::move(*v));
		}
		return value(std::move(out));
	}

	Outcome negation(const Node &n)
	{
		auto b = truth(n);
		return b ? value(!*b) : Outcome(b.error());
	}

	Outcome minus(const Node &n)
	{
		auto v = eval(n);
		const auto *number = v ? std::get_if<std::int64_t>(&v->is) : nullptr;
		return number && *number != INT64_MIN ? value(-*number) : v ? no_overload() : v;
	}

	// One that decides does so whatever is wrong with the others.
	Outcome joined(const Node &n, bool decides)
	{
		std::optional<Error> wrong;
		for (const Node &part : n.args) {
			auto b = truth(part);
			if (b && *b == decides)
				return value(decides);
			if (!b && !wrong)
				wrong = b.error();
		}
		return wrong ? Outcome(*wrong) : value(!decides);
	}

	Outcome compared(const Node &n)
	{
		auto a = eval(n.args[0]), b = eval(n.args[1]);
		if (!a || !b)
			return a ? b : a;
		if (n.name == "==" || n.name == "!=")
			return value(equal(*a, *b) == (n.name == "=="));
		if (n.name == "in")
			return in(*a, *b);
		const auto *x = std::get_if<std::int64_t>(&a->is), *y = std::get_if<std::int64_t>(&b->is);
		const std::string *s = text_of(*a), *t = text_of(*b);
		if (!(x && y) && !(s && t))
			return no_overload();
		const auto o = x ? *x <=> *y : *s <=> *t;
		return value(n.name == "<" ? o < 0 : n.name == "<=" ? o <= 0 : n.name == ">" ? o > 0 : o >= 0);
	}

	Outcome in(const Value &what, const Value &where) const
	{
		if (const auto *list = std::get_if<SelectorList>(&where.is))
			return value(std::ranges::any_of(*list, [&](const Value &v) { return equal(v, what); }));
		const auto *group = std::get_if<SelectorGroup>(&where.is);
		return group && text_of(what) ? value(has_key(*group, *text_of(what))) : no_overload();
	}

	Outcome bound(const Node &n)
	{
		auto v = eval(n.args[0]);
		if (!v)
			return v;
		bound_.emplace_back(n.name, std::move(*v));
		auto out = eval(n.args[1]);
		bound_.pop_back();
		return out;
	}

	Outcome call(const Node &n)
	{
		std::vector<Value> args;
		for (const Node &a : n.args) {
			auto v = eval(a);
			if (!v)
				return v;
			args.push_back(std::move(*v));
		}
		const Function *f = find_function(n.name, n.method, n.args.size() - (n.method ? 1 : 0));
		return f ? f->call(args) : no_overload();
	}

	const std::size_t allowance_;
	std::size_t spent_ = 0;
	const std::string &driver_;
	const kube::Device &device_;
	std::vector<std::pair<std::string, Value>> bound_; // by cel.bind(), the innermost last
};

} // namespace

bool is_selector_function(const std::string &name, bool method, std::size_t args)
{
	return find_function(name, method, args) != nullptr;
}

Result<DeviceSelector> DeviceSelector::parse(std::string_view text)
{
	auto root = parse_selector(text);
	if (!root)
		return root.error();
	return DeviceSelector(std::make_shared<const SelectorNode>(std::move(*root)));
}

Result<bool> DeviceSelector::matches(const std::string &driver, const kube::Device &device, std::size_t &allowance) const
{
	Evaluation evaluation(driver, device, allowance);
	auto out = evaluation.truth(*root_);
	allowance -= std::min(allowance, evaluation.spent());
	return out;
}

Result<bool> DeviceSelector::matches(const std::string &driver, const kube::Device &device) const
{
	std::size_t allowance = std::numeric_limits<std::size_t>::max();
	return matches(driver, device, allowance);
}

} // namespace sk8::core
