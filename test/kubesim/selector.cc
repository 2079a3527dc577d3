// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/selector.h"

#include <algorithm>

#include "test/kubesim/store.h"

namespace kubesim {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

struct FieldRow {
	const char *resource; // nullptr: every kind
	const char *field;
	const char *when_absent;
};
const FieldRow field_table[] = {
	{nullptr, "metadata.name", ""},
	{nullptr, "metadata.namespace", ""},
	{"pods", "spec.nodeName", ""},
	{"pods", "spec.restartPolicy", ""},
	{"pods", "spec.schedulerName", ""},
	{"pods", "spec.serviceAccountName", ""},
	{"pods", "spec.hostNetwork", "false"},
	{"pods", "status.phase", ""},
	{"pods", "status.podIP", ""},
	{"pods", "status.nominatedNodeName", ""},
	{"nodes", "spec.unschedulable", "false"},
	{"namespaces", "status.phase", ""},
	{"secrets", "type", ""},
	{"events", "involvedObject.kind", ""},
	{"events", "involvedObject.namespace", ""},
	{"events", "involvedObject.name", ""},
	{"events", "involvedObject.uid", ""},
	{"events", "involvedObject.apiVersion", ""},
	{"events", "involvedObject.resourceVersion", ""},
	{"events", "involvedObject.fieldPath", ""},
	{"events", "reason", ""},
	{"events", "reportingComponent", ""},
	{"events", "source", ""},
	{"events", "type", ""},
};

bool applies(const FieldRow &row, const Kind &kind)
{
	if (std::string_view(row.field) == "metadata.namespace" && !kind.namespaced)
		return false;
	return !row.resource || std::string_view(row.resource) == kind.resource;
}

std::string field_value(const FieldRow &row, const J &object)
{
	std::string_view field = row.field;
	J value = field == "source" ? object.path("source.component") : object.path(field);
	if (value.is_boolean())
		return value.truth() ? "true" : "false";
	return value.str(row.when_absent);
}

bool holds(const Requirement &r, const Values &values)
{
	auto it = std::find_if(values.begin(), values.end(), [&](auto &v) { return v.first == r.key; });
	if (it == values.end())
		return r.op == Requirement::not_in || r.op == Requirement::missing;
	bool listed = std::find(r.values.begin(), r.values.end(), it->second) != r.values.end();
	switch (r.op) {
	case Requirement::in:
		return listed;
	case Requirement::not_in:
		return !listed;
	case Requirement::exists:
		return true;
	case Requirement::missing:
		break;
	}
	return false;
}

// Splits a label selector into words and the signs = == != ! ( ) ,
struct Lexer {
	const std::string &text;
	std::size_t at = 0;

	std::string next()
	{
		while (at < text.size() && isspace(static_cast<unsigned char>(text[at])))
			at++;
		if (at == text.size())
			return {};
		static const std::string signs = "=!(),<>";
		if (signs.find(text[at]) != signs.npos) {
			std::size_t length = text.compare(at, 2, "==") == 0 || text.compare(at, 2, "!=") == 0 ? 2 : 1;
			at += length;
			return text.substr(at - length, length);
		}
		std::size_t from = at;
		while (at < text.size() && !isspace(static_cast<unsigned char>(text[at])) &&
		       signs.find(text[at]) == signs.npos)
			at++;
		return text.substr(from, at - from);
	}
	std::string peek()
	{
		std::size_t keep = at;
		std::string word = next();
		at = keep;
		return word;
	}
};

bool is_word(const std::string &token)
{
	return !token.empty() && std::string("=!(),<>").find(token[0]) == std::string::npos;
}

Failure found(const std::string &token, const std::string &expected)
{
	return bad_request("found '" + token + "', expected: " + expected);
}

Outcome<Requirement> parse_set(Lexer &lex, Requirement r)
{
	if (std::string open = lex.next(); open != "(")
		return found(open, "'('");
	for (;;) {
		std::string value = lex.peek();
		if (is_word(value))
			lex.next();
		else
			value.clear();
		r.values.push_back(value);
		std::string sign = lex.next();
		if (sign == ")")
			return r;
		if (sign != ",")
			return found(sign, "',' or ')'");
	}
}

Outcome<Requirement> parse_requirement(Lexer &lex)
{
	Requirement r;
	std::string token = lex.next();
	if (token == "!") {
		r.op = Requirement::missing;
		r.key = lex.next();
		if (!is_word(r.key))
			return found(r.key, "identifier");
		return r;
	}
	if (!is_word(token))
		return found(token, "!, identifier, or 'end of string'");
	r.key = token;
	token = lex.peek();
	if (token.empty() || token == ",") {
		r.op = Requirement::exists;
		return r;
	}
	lex.next();
	if (token == "in" || token == "notin") {
		r.op = token == "in" ? Requirement::in : Requirement::not_in;
		return parse_set(lex, r);
	}
	if (token != "=" && token != "==" && token != "!=")
		return found(token, "in, notin, =, ==, !=, gt, lt");
	r.op = token == "!=" ? Requirement::not_in : Requirement::in;
	std::string value = lex.peek();
	if (is_word(value))
		lex.next();
	else
		value.clear();
	r.values.push_back(value);
	return r;
}

} // namespace

bool Selector::matches(const Object &object) const
{
	if (!ns.empty() && object.ns != ns)
		return false;
	for (const auto &r : fields)
		if (!holds(r, object.fields))
			return false;
	for (const auto &r : labels)
		if (!holds(r, object.labels))
			return false;
	return true;
}

Values selectable_fields(const Kind &kind, const J &object)
{
	Values out;
	for (const auto &row : field_table)
		if (applies(row, kind))
			out.emplace_back(row.field, field_value(row, object));
	return out;
}

Outcome<std::vector<Requirement>> parse_label_selector(const std::string &text)
{
	std::vector<Requirement> out;
	Lexer lex{text};
	while (!lex.peek().empty()) {
		auto r = parse_requirement(lex);
		if (!r)
			return r.failure();
		out.push_back(*r);
		std::string sign = lex.next();
		if (sign.empty())
			break;
		if (sign != ",")
			return found(sign, "',' or 'end of string'");
	}
	return out;
}

Outcome<std::vector<Requirement>> parse_field_selector(const Kind &kind, const std::string &text)
{
	std::vector<Requirement> out;
	for (std::size_t from = 0; from < text.size();) {
		std::size_t to = std::min(text.find(',', from), text.size());
		std::string term = text.substr(from, to - from);
		from = to + 1;
		if (term.empty())
			continue;
		std::size_t eq = term.find('=');
		if (eq == term.npos || eq == 0)
			return bad_request("invalid selector: '" + term + "'; can't understand '" + term + "'");
		Requirement r;
		bool negative = term[eq - 1] == '!';
		r.op = negative ? Requirement::not_in : Requirement::in;
		r.key = term.substr(0, eq - (negative ? 1 : 0));
		r.values.push_back(term.substr(eq + (term.compare(eq, 2, "==") == 0 ? 2 : 1)));
		if (kind.group == std::string_view("events.k8s.io") && r.key.rfind("regarding.", 0) == 0)
			r.key = "involvedObject." + r.key.substr(10);
		bool known = std::any_of(std::begin(field_table), std::end(field_table), [&](auto &row) {
			return applies(row, kind) && r.key == row.field;
		});
		if (!known)
			return bad_request("field label not supported: " + r.key);
		out.push_back(r);
	}
	return out;
}

} // namespace kubesim
