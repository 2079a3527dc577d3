// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/yaml.h"

#include "test/unit/catch.h"

using sk8::parse_yaml;
using sk8::Result;
using sk8::YamlNode;

namespace {

std::string error_of(std::string_view text)
{
	Result<YamlNode> root = parse_yaml(text, "f.yaml");
	return root ? "no error" : root.error().message;
}

std::string nested(int depth)
{
	std::string s;
	for (int i = 0; i < depth; i++)
		s += '[';
	for (int i = 0; i < depth; i++)
		s += ']';
	return s;
}

} // namespace

TEST_CASE("yaml: values, order and line numbers are kept")
{
	Result<YamlNode> root = parse_yaml("a: 1\n"
					   "b:\n"
					   "  - x\n"
					   "  - \"null\"\n"
					   "c: {d: ~, e: 'q'}\n"
					   "f: |\n"
					   "  two\n"
					   "  lines\n"
					   "g:\n",
					   "f.yaml");
	REQUIRE(root.ok());
	REQUIRE(root->members.size() == 5);
	CHECK(root->members[1].key == "b");
	CHECK(root->members[1].line == 2);
	CHECK(root->find("b")->items[1].text == "null");
	CHECK(root->find("b")->items[1].line == 4);
	CHECK_FALSE(root->find("b")->items[1].is_null());
	CHECK(root->find("c")->find("d")->is_null());
	CHECK(root->find("c")->str("e") == "q");
	CHECK(root->find("c")->str("d", "other") == "other");
	CHECK(root->str("f") == "two\nlines\n");
	CHECK(root->find("g")->is_null());
	CHECK(root->find("h") == nullptr);
	CHECK(root->str("b", "other") == "other");
}

TEST_CASE("yaml: JSON is read too, an empty text is null")
{
	CHECK(parse_yaml(R"({"a": {"b": ["c\u00e9"]}})", "f")->find("a")->find("b")->items[0].text ==
	      "c\xc3\xa9");
	CHECK(parse_yaml("", "f")->is_null());
	CHECK(parse_yaml("# only a comment\n", "f")->is_null());
	CHECK(parse_yaml("---\n", "f")->is_null());
	CHECK(parse_yaml("\xef\xbb\xbf" "a: 1\r\nb: 2\r\n", "f")->str("b") == "2");
	CHECK(parse_yaml("a: !!str null", "f")->find("a")->is_null() == false);
}

TEST_CASE("yaml: what is refused is said with file and line")
{
	const struct {
		std::string text;
		const char *error;
	} cases[] = {
		{"a: &x 1\nb: *x\n",
		 "f.yaml:2: an alias (*name) is not supported, write the value again"},
		{"a: 1\nb: 2\na: 3\n",
		 "f.yaml:3: the key \"a\" is already given in line 1, remove one of the two"},
		{"x:\n  - {k: 1, \"k\": 2}\n",
		 "f.yaml:2: the key \"k\" is already given in line 2, remove one of the two"},
		{"a: 1\n---\nb: 2\n", "f.yaml:2: a second document begins here, write only one"},
		{"a: !!binary abcd\n", "f.yaml:1: a tag (!name) is not supported, leave it out"},
		{"a: !x {}\n", "f.yaml:1: a tag (!name) is not supported, leave it out"},
		{"? [a]\n: 1\n", "f.yaml:1: a key must be a plain word"},
		{"a: [1, 2\nb: 3\n", "f.yaml:2: not YAML: did not find expected ',' or ']'"},
		{"a: \"x\n", "f.yaml:2: not YAML: found unexpected end of stream"},
		{"a: \x01\n", "f.yaml:1: not YAML: control characters are not allowed after this line"},
		{nested(33), "f.yaml:1: nested more than 32 levels deep"},
		{nested(100000), "f.yaml:1: nested more than 32 levels deep"},
		{std::string(1024 * 1024 + 1, ' '), "f.yaml: larger than 1024 KiB"},
	};
	for (const auto &c : cases) {
		INFO(c.text.substr(0, 60));
		CHECK(error_of(c.text) == c.error);
	}
	CHECK(error_of(nested(32)) == "no error");
	// libyaml's words differ between its versions
	CHECK(error_of("a: 1\n\tb: 2\n").substr(0, 26) == "f.yaml:2: not YAML: found ");
	CHECK(error_of("a: \xff\n").substr(0, 20) == "f.yaml:1: not YAML: ");
	std::string many = "[";
	for (int i = 0; i < 100000; i++)
		many += "1,";
	CHECK(error_of(many + "]") == "f.yaml:1: more than 100000 values");
}

TEST_CASE("yaml: all duplicate keys are reported at once")
{
	std::vector<sk8::YamlProblem> problems;
	CHECK_FALSE(parse_yaml("a: 1\na: 2\nb: {c: 1, c: 2}\n", problems).has_value());
	REQUIRE(problems.size() == 2);
	CHECK(problems[0].line == 2);
	CHECK(problems[1].line == 3);
}
