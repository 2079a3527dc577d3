// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/yaml.h"

#include <cstdlib>

#include <yaml.h>

namespace kubesim {
namespace {

constexpr int max_depth = 100;

J scalar(const yaml_node_t &node)
{
	const std::string text(reinterpret_cast<const char *>(node.data.scalar.value), node.data.scalar.length);
	if (node.data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return J::of(text);
	if (text.empty() || text == "null" || text == "~" || text == "Null" || text == "NULL")
		return J::null();
	if (text == "true" || text == "True" || text == "TRUE")
		return J::of(true);
	if (text == "false" || text == "False" || text == "FALSE")
		return J::of(false);
	if (text.find_first_not_of("0123456789+-.eE") != text.npos)
		return J::of(text);
	char *end;
	long long whole = std::strtoll(text.c_str(), &end, 10);
	if (!*end)
		return J::of(static_cast<std::int64_t>(whole));
	double real = std::strtod(text.c_str(), &end);
	return *end ? J::of(text) : J::steal(json_real(real));
}

J convert(yaml_document_t &doc, const yaml_node_t *node, int depth)
{
	if (!node || depth > max_depth)
		return J::null();
	if (node->type == YAML_SCALAR_NODE)
		return scalar(*node);
	if (node->type == YAML_SEQUENCE_NODE) {
		J list = J::array();
		for (auto *i = node->data.sequence.items.start; i < node->data.sequence.items.top; i++)
			list.append(convert(doc, yaml_document_get_node(&doc, *i), depth + 1));
		return list;
	}
	J object = J::object();
	for (auto *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top; p++) {
		const yaml_node_t *key = yaml_document_get_node(&doc, p->key);
		if (key && key->type == YAML_SCALAR_NODE)
			object.set(reinterpret_cast<const char *>(key->data.scalar.value),
				   convert(doc, yaml_document_get_node(&doc, p->value), depth + 1));
	}
	return object;
}

} // namespace

std::vector<J> parse_yaml_documents(const std::string &text, std::string *error)
{
	std::vector<J> out;
	yaml_parser_t parser;
	yaml_parser_initialize(&parser);
	yaml_parser_set_input_string(&parser, reinterpret_cast<const unsigned char *>(text.data()), text.size());
	for (;;) {
		yaml_document_t doc;
		if (!yaml_parser_load(&parser, &doc)) {
			if (error)
				*error = "line " + std::to_string(parser.problem_mark.line + 1) + ": " +
					 (parser.problem ? parser.problem : "not YAML");
			out.clear();
			break;
		}
		yaml_node_t *root = yaml_document_get_root_node(&doc);
		if (root)
			out.push_back(convert(doc, root, 0));
		yaml_document_delete(&doc);
		if (!root)
			break;
	}
	yaml_parser_delete(&parser);
	return out;
}

J parse_yaml(const std::string &text, std::string *error)
{
	auto documents = parse_yaml_documents(text, error);
	return documents.empty() ? J() : documents.front();
}

} // namespace kubesim
