// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The grammar of https://github.com/google/cel-spec/blob/master/doc/langdef.md, as far as dra_selector.h has it.
#include <array>
#include <optional>
#include <stdexcept>
#include <utility>

#include "lib/base/text.h"
#include "lib/core/dra_selector_node.h"

namespace sk8::core {

namespace {

using Node = SelectorNode;
using Kind = SelectorNode::Kind;

// Within this file only: a parser that returns a Result from each of its functions is twice as long.
struct NotUnderstood : std::runtime_error {
	using std::runtime_error::runtime_error;
};

struct Token {
	enum class Kind { end, word, number, text, sign } kind = Kind::end;
	std::string value; // of a text: what it says
};

bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

class Lexer {
public:
	explicit Lexer(std::string_view text) : text_(text) {}

	Token next()
	{
		while (at_ < text_.size() && std::string_view(" \t\r\n\f").find(text_[at_]) != std::string_view::npos)
			at_++;
		if (at_ == text_.size())
			return {Token::Kind::end, ""};
		const char c = text_[at_];
		if (c == '"' || c == '\'')
			return {Token::Kind::text, quoted(false)};
		if (c == 'r' && at_ + 1 < text_.size() && (text_[at_ + 1] == '"' || text_[at_ + 1] == '\'')) {
			at_++;
			return {Token::Kind::text, quoted(true)};
		}
		if (is_letter(c))
			return {Token::Kind::word, run([](char x) { return is_letter(x) || is_digit(x); })};
		if (is_digit(c))
			return {Token::Kind::number, run([](char x) { return is_letter(x) || is_digit(x) || x == '.'; })};
		return {Token::Kind::sign, sign()};
	}

private:
	template <class F>
	std::string run(F belongs)
	{
		const std::size_t from = at_;
		while (at_ < text_.size() && belongs(text_[at_]))
			at_++;
		return std::string(text_.substr(from, at_ - from));
	}

	std::string sign()
	{
		static constexpr std::array<std::string_view, 18> signs{"&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "(", ")",
									"[", "]", ",", ".", "?", ":", "-"};
		for (const auto s : signs)
			if (text_.substr(at_).starts_with(s)) {
				at_ += s.size();
				return std::string(s);
			}
		throw NotUnderstood("\"" + one_line(text_.substr(at_, 1)) + "\" is not supported");
	}

	std::string quoted(bool raw)
	{
		const char mark = text_[at_++];
		if (text_.substr(at_).starts_with(std::string(2, mark)))
			throw NotUnderstood("texts in three quotation marks are not supported");
		std::string out;
		while (at_ < text_.size() && text_[at_] != mark) {
			if (text_[at_] == '\\' && !raw)
				out += escaped();
			else
				out += text_[at_++];
		}
		if (at_ == text_.size())
			throw NotUnderstood("a text does not end");
		at_++;
		return out;
	}

	char escaped()
	{
		static constexpr std::pair<char, char> known[] = {{'n', '\n'}, {'t', '\t'}, {'r', '\r'}, {'\\', '\\'}, {'"', '"'}, {'\'', '\''},
								  {'`', '`'}};
		const char c = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
		for (const auto &[letter, meaning] : known)
			if (letter == c) {
				at_ += 2;
				return meaning;
			}
		throw NotUnderstood("a text has an escape that is not supported");
	}

	std::string_view text_;
	std::size_t at_ = 0;
};

class Parser {
public:
	explicit Parser(std::string_view text) : lexer_(text), token_(lexer_.next()) {}

	Node whole()
	{
		Node out = expression();
		if (token_.kind != Token::Kind::end)
			unexpected();
		return out;
	}

private:
	// How deep the parser is in itself; and so the nodes.
	class Level {
	public:
		explicit Level(std::size_t &depth) : depth_(depth)
		{
			if (++depth_ > max_selector_depth)
				throw NotUnderstood("it is nested too deeply");
		}
		~Level() { depth_--; }
		Level(const Level &) = delete;
		Level &operator=(const Level &) = delete;

	private:
		std::size_t &depth_;
	};

	[[noreturn]] void unexpected() const
	{
		throw NotUnderstood(token_.kind == Token::Kind::end ? "it ends too early" : "\"" + one_line(token_.value, 40) + "\" is not understood there");
	}

	bool take(std::string_view sign)
	{
		if (token_.kind != Token::Kind::sign || token_.value != sign)
			return false;
		token_ = lexer_.next();
		return true;
	}
	void want(std::string_view sign)
	{
		if (!take(sign))
			unexpected();
	}
	std::string want_word()
	{
		if (token_.kind != Token::Kind::word)
			unexpected();
		return std::exchange(token_, lexer_.next()).value;
	}

	Node expression()
	{
		const Level level(depth_);
		Node first = joined("||", Kind::any, [this] { return joined("&&", Kind::all, [this] { return relation(); }); });
		if (!take("?"))
			return first;
		Node out{Kind::conditional, ""};
		out.args.push_back(std::move(first));
		out.args.push_back(expression());
		want(":");
		out.args.push_back(expression());
		return out;
	}

	// One node for a whole row of them: their number does not make it deep.
	template <class F>
	Node joined(std::string_view sign, Kind kind, F part)
	{
		Node first = part();
		if (token_.kind != Token::Kind::sign || token_.value != sign)
			return first;
		Node out{kind, ""};
		out.args.push_back(std::move(first));
		while (take(sign))
			out.args.push_back(part());
		return out;
	}

	Node relation()
	{
		Node left = unary();
		static constexpr std::array<std::string_view, 6> signs{"==", "!=", "<=", ">=", "<", ">"};
		std::string found;
		if (token_.kind == Token::Kind::word && token_.value == "in")
			found = want_word();
		for (const auto s : signs)
			if (found.empty() && take(s))
				found = s;
		if (found.empty())
			return left;
		Node out{Kind::compare, found};
		out.args.push_back(std::move(left));
		out.args.push_back(unary());
		return out;
	}

	Node unary()
	{
		const Level level(depth_);
		for (const auto &[sign, kind] : {std::pair{"!", Kind::negation}, std::pair{"-", Kind::minus}})
			if (take(sign)) {
				Node out{kind, ""};
				out.args.push_back(unary());
				return out;
			}
		return member(primary());
	}

	Node member(Node of)
	{
		for (std::size_t steps = 0;; steps++) {
			if (steps > max_selector_depth)
				throw NotUnderstood("it is nested too deeply");
			Node out;
			if (take(".")) {
				out = {Kind::member, want_word()};
				out.args.push_back(std::move(of));
				if (take("("))
					out = method(std::move(out));
			} else if (take("[")) {
				out = {Kind::index, ""};
				out.args.push_back(std::move(of));
				out.args.push_back(expression());
				want("]");
			} else {
				return of;
			}
			of = std::move(out);
		}
	}

	Node method(Node of)
	{
		if (of.args[0].kind == Kind::name && of.args[0].name == "cel" && of.name == "bind")
			return bind();
		Node out{Kind::call, std::move(of.name)};
		out.method = true;
		out.args.push_back(std::move(of.args[0]));
		arguments(out);
		return known(std::move(out));
	}

	Node bind()
	{
		Node out{Kind::bind, want_word()};
		want(",");
		out.args.push_back(expression());
		want(",");
		out.args.push_back(expression());
		want(")");
		return out;
	}

	void arguments(Node &of)
	{
		if (take(")"))
			return;
		do
			of.args.push_back(expression());
		while (take(","));
		want(")");
	}

	static Node known(Node call)
	{
		if (!is_selector_function(call.name, call.method, call.args.size() - (call.method ? 1 : 0)))
			throw NotUnderstood(one_line(call.name, 40) + "() with so many arguments is not supported");
		return call;
	}

	Node primary()
	{
		if (take("(")) {
			Node out = expression();
			want(")");
			return out;
		}
		if (take("[")) {
			Node out{Kind::list, ""};
			if (take("]"))
				return out;
			do
				out.args.push_back(expression());
			while (take(","));
			want("]");
			return out;
		}
		if (token_.kind == Token::Kind::text)
			return {Kind::literal, "", {std::exchange(token_, lexer_.next()).value}};
		if (token_.kind == Token::Kind::number)
			return number();
		return named();
	}

	Node number()
	{
		const auto n = parse_integer(token_.value);
		if (!n)
			throw NotUnderstood("\"" + one_line(token_.value, 40) + "\" is no whole decimal number, others are not supported");
		token_ = lexer_.next();
		return {Kind::literal, "", {*n}};
	}

	Node named()
	{
		const std::string word = want_word();
		if (word == "true" || word == "false")
			return {Kind::literal, "", {word == "true"}};
		if (!take("("))
			return {Kind::name, word};
		Node out{word == "has" ? Kind::has : Kind::call, word};
		arguments(out);
		if (word != "has")
			return known(std::move(out));
		if (out.args.size() != 1 || out.args[0].kind != Kind::member)
			throw NotUnderstood("has() wants one attribute");
		return out;
	}

	Lexer lexer_;
	Token token_;
	std::size_t depth_ = 0;
};

} // namespace

Result<SelectorNode> parse_selector(std::string_view text)
{
	if (text.size() > kube::max_selector_bytes)
		return Error{"it is longer than " + std::to_string(kube::max_selector_bytes) + " bytes"};
	try {
		return Parser(text).whole();
	} catch (const NotUnderstood &why) {
		return Error{why.what()};
	}
}

} // namespace sk8::core
