// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Cut what an API server sends into objects while it arrives, so that the answer
// is never one document in memory (as one, a list costs 12 times its size).
// They know strings, escapes and nesting, nothing else of JSON: each piece still
// goes through a real parser, which finds whatever is malformed in it.
#ifndef SK8_KUBE_SPLITTER_H
#define SK8_KUBE_SPLITTER_H

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace sk8::kube {

// A LIST answer: calls item(std::string_view) -> bool for each object of "items"
// (false: stop) and keeps the document without them, the envelope. Memory: one
// item, if it spans chunks, plus the envelope.
template <class ItemFn>
class ListSplitter {
public:
	enum class Status { more, done, malformed, too_large, stopped };

	explicit ListSplitter(ItemFn item, std::size_t max_item = 16u << 20,
			      std::size_t max_envelope = 1u << 20)
		: item_(std::move(item)), max_item_(max_item), max_envelope_(max_envelope)
	{
	}

	// Chunks of any size, down to one byte.
	Status feed(std::string_view s)
	{
		std::size_t i = 0;
		while (i < s.size() && (status_ == Status::more || status_ == Status::done)) {
			if (in_items_)
				i = items(s, i);
			else
				outside(s[i++]);
		}
		return status_;
	}

	// At the end of the body: a document cut short is an error.
	Status finish()
	{
		if (status_ == Status::more)
			status_ = Status::malformed;
		return status_;
	}

	// {"kind":"PodList","apiVersion":"v1","metadata":{...},"items":[]}
	const std::string &envelope() const { return envelope_; }
	std::size_t count() const { return count_; } // of items

private:
	// Everything that is not an item, one character at a time: it is short.
	void outside(char c)
	{
		if (status_ == Status::done) { // only white space may follow
			if (c != ' ' && c != '\n' && c != '\r' && c != '\t')
				status_ = Status::malformed;
			return;
		}
		if (envelope_.size() >= max_envelope_) {
			status_ = Status::too_large;
			return;
		}
		envelope_ += c;
		if (string_) {
			if (escape_) {
				escape_ = false;
			} else if (c == '\\') {
				escape_ = true;
			} else if (c == '"') {
				string_ = false;
				last_.assign(envelope_, start_, envelope_.size() - 1 - start_);
			}
			return;
		}
		structure(c);
	}

	void structure(char c)
	{
		switch (c) {
		case '"':
			string_ = true;
			start_ = envelope_.size();
			break;
		case ':':
			if (depth_ == 1)
				key_ = last_;
			break;
		case '[':
			if (depth_ == 1 && key_ == "items") {
				in_items_ = true;
				before_ = Before::begin;
				break;
			}
			[[fallthrough]];
		case '{':
			++depth_;
			break;
		case ']':
		case '}':
			if (--depth_ == 0)
				status_ = Status::done;
			else if (depth_ < 0)
				status_ = Status::malformed;
			break;
		case ',':
			if (depth_ == 1)
				key_.clear();
			break;
		}
	}

	// Inside the array; returns the index of the first character not consumed.
	std::size_t items(std::string_view s, std::size_t i)
	{
		std::size_t from = i;    // where this chunk's part of the item starts
		int depth = item_depth_; // in locals: this loop sees every byte
		bool string = string_, escape = escape_;

		for (; i < s.size(); ++i) {
			char c = s[i];
			if (string) {
				if (escape)
					escape = false;
				else if (c == '\\')
					escape = true;
				else if (c == '"')
					string = false;
				continue;
			}
			switch (c) {
			case '"':
				if (depth == 0)
					return malformed(s);
				string = true;
				break;
			case '{':
				if (depth++ == 0) {
					if (before_ == Before::item)
						return malformed(s);
					from = i;
				}
				break;
			case '[':
				if (depth++ == 0)
					return malformed(s); // items are objects
				break;
			case ']':
				if (depth == 0) {
					if (before_ == Before::comma)
						return malformed(s);
					leave_items();
					return i + 1;
				}
				[[fallthrough]];
			case '}':
				if (--depth < 0)
					return malformed(s);
				if (depth == 0 && !emit(s.substr(from, i + 1 - from)))
					return s.size();
				break;
			case ',':
				if (depth == 0) {
					if (before_ != Before::item)
						return malformed(s);
					before_ = Before::comma;
				}
				break;
			case ' ':
			case '\n':
			case '\r':
			case '\t':
				break;
			default:
				if (depth == 0)
					return malformed(s);
			}
		}
		item_depth_ = depth;
		string_ = string;
		escape_ = escape;
		if (depth > 0) {
			carry_.append(s.substr(from));
			if (carry_.size() > max_item_)
				status_ = Status::too_large;
		}
		return i;
	}

	void leave_items()
	{
		envelope_ += ']';
		in_items_ = false;
		key_.clear();
		item_depth_ = 0;
		string_ = escape_ = false;
	}

	bool emit(std::string_view part)
	{
		if (carry_.size() + part.size() > max_item_) {
			status_ = Status::too_large;
			return false;
		}
		if (!carry_.empty())
			part = carry_.append(part);
		bool go_on = item_(part);
		carry_.clear();
		++count_;
		before_ = Before::item;
		if (!go_on)
			status_ = Status::stopped;
		return go_on;
	}

	std::size_t malformed(std::string_view s)
	{
		status_ = Status::malformed;
		return s.size();
	}

	ItemFn item_;
	std::size_t max_item_, max_envelope_, count_ = 0, start_ = 0;
	std::string envelope_, carry_, last_, key_;
	int depth_ = 0, item_depth_ = 0;
	enum class Before { begin, item, comma } before_ = Before::begin; // what comes next among the items
	bool in_items_ = false, string_ = false, escape_ = false;
	Status status_ = Status::more;
};

// A WATCH answer: calls line(std::string_view text, bool cut) -> bool for each line
// (false: stop), without its newline; empty lines are left out. Of a line longer
// than max_line the first max_line bytes come, with cut set, and the rest is
// skipped. A last line without newline never comes.
template <class LineFn>
class LineSplitter {
public:
	explicit LineSplitter(LineFn line, std::size_t max_line = 16u << 20)
		: line_(std::move(line)), max_line_(max_line)
	{
	}

	// Returns false once line() has said stop.
	bool feed(std::string_view s)
	{
		while (!s.empty() && !stopped_) {
			std::size_t end = s.find('\n');
			take(s.substr(0, end));
			if (end == s.npos)
				break;
			s.remove_prefix(end + 1);
			finish_line();
		}
		return !stopped_;
	}

	// Bytes of a line that is not complete yet.
	std::size_t pending() const { return carry_.size(); }

private:
	void take(std::string_view part)
	{
		if (skipping_)
			return;
		std::size_t room = max_line_ - carry_.size();
		carry_.append(part.substr(0, room));
		if (part.size() <= room)
			return;
		skipping_ = true;
		call(true);
	}

	void finish_line()
	{
		if (!skipping_ && !carry_.empty())
			call(false);
		skipping_ = false;
	}

	void call(bool cut)
	{
		std::string text = std::exchange(carry_, {});
		if (!stopped_ && !line_(std::string_view(text), cut))
			stopped_ = true;
		text.clear();
		carry_ = std::move(text); // its memory serves the next line
	}

	LineFn line_;
	std::size_t max_line_;
	std::string carry_;
	bool skipping_ = false, stopped_ = false;
};

// The first "managedFields":[ that is a key: a quote behind a backslash is inside one.
inline std::size_t find_managed_fields(std::string_view object, std::string_view key)
{
	std::size_t at = object.find(key);
	while (at != object.npos && at > 0 && object[at - 1] == '\\')
		at = object.find(key, at + 1);
	return at;
}

// Cuts "managedFields":[...] out of one object (about a third of a typical pod),
// into buf if there is something to cut; the result points into object or buf.
// The raw search is safe: inside a JSON string the quotes would be escaped.
inline std::string_view without_managed_fields(std::string_view object, std::string &buf)
{
	static constexpr std::string_view key = "\"managedFields\":[", space = " \t\r\n";
	const std::size_t p = find_managed_fields(object, key);
	if (p == object.npos)
		return object;
	std::size_t q = p + key.size();
	bool string = false;
	for (int depth = 1; q < object.size() && depth > 0; ++q) {
		char c = object[q];
		if (string) {
			if (c == '\\')
				++q;
			else if (c == '"')
				string = false;
		} else if (c == '"') {
			string = true;
		} else if (c == '[' || c == '{') {
			++depth;
		} else if (c == ']' || c == '}') {
			--depth;
		}
	}
	q = object.find_first_not_of(space, q);
	if (q == object.npos)
		return object; // malformed: let the parser say so
	buf.assign(object.substr(0, p));
	if (object[q] == ',')
		++q; // "managedFields":[...],"name":...
	else if (std::size_t last = buf.find_last_not_of(space); last != buf.npos && buf[last] == ',')
		buf.resize(last); // ...,"managedFields":[...]}
	return buf.append(object.substr(q));
}

} // namespace sk8::kube

#endif
