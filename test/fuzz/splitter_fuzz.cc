// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The splitters against jansson, which parses the same text as one document, and
// against themselves fed in other chunks.
#include <algorithm>
#include <functional>
#include <jansson.h>
#include <memory>
#include <vector>

#include "lib/kube/splitter.h"
#include "test/fuzz/fuzz.h"

using namespace sk8::fuzz;
using namespace sk8::kube;

namespace {

struct Free {
	void operator()(json_t *j) const { json_decref(j); }
};
using Doc = std::unique_ptr<json_t, Free>;

Doc parse(std::string_view text, bool &too_deep)
{
	json_error_t error;
	Doc doc(json_loadb(text.data() ? text.data() : "", text.size(), JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error));
	too_deep |= !doc && json_error_code(&error) == json_error_stack_overflow;
	return doc;
}

// Sizes of chunks: all at once, single bytes, or pseudo-random ones.
class Chunks {
public:
	explicit Chunks(unsigned kind) : kind_(kind), state_(kind * 2654435761u + 1) {}
	std::size_t next(std::size_t left)
	{
		if (kind_ == 0)
			return left;
		state_ = state_ * 1664525u + 1013904223u;
		return std::min<std::size_t>(left, kind_ == 1 ? 1 : 1 + (state_ >> 16) % kind_);
	}

private:
	unsigned kind_;
	std::uint32_t state_;
};

template <class F>
void feed_in_chunks(std::string_view text, unsigned kind, F &&feed)
{
	for (Chunks chunks(kind); !text.empty();) {
		const std::size_t n = chunks.next(text.size());
		// a copy of its own, so that the sanitizer sees a read beyond the chunk
		const std::vector<char> own(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n));
		feed(std::string_view(own.data(), n));
		text.remove_prefix(n);
	}
}

// ---- lists ----

using List = ListSplitter<std::function<bool(std::string_view)>>;
using Status = List::Status;

struct Cut {
	Status status;
	std::vector<std::string> items;
	std::string envelope;
};

Cut cut(std::string_view text, unsigned chunks, std::size_t max_item)
{
	Cut out;
	List list(
		[&](std::string_view item) {
			expect(item.size() <= max_item, "no item is larger than allowed");
			out.items.emplace_back(item);
			return true;
		},
		max_item);
	feed_in_chunks(text, chunks, [&](std::string_view part) { list.feed(part); });
	out.status = list.finish();
	out.envelope = list.envelope();
	expect(list.count() == out.items.size(), "count() counts the items");
	return out;
}

// Envelope and items make the document again.
Doc put_together(const Cut &c, bool &too_deep)
{
	Doc doc = parse(c.envelope, too_deep);
	json_t *items = json_object_get(doc.get(), "items");
	for (const std::string &text : c.items) {
		Doc item = parse(text, too_deep);
		if (!item || json_array_append_new(items, item.release()) != 0)
			return nullptr;
	}
	return doc;
}

bool has_odd_items(const json_t *doc)
{
	json_t *items = json_object_get(doc, "items");
	for (std::size_t i = 0; i < json_array_size(items); i++)
		if (!json_is_object(json_array_get(items, i)))
			return true;
	return false;
}

void check_list(std::string_view text, unsigned chunks, std::size_t max_item)
{
	const Cut small = cut(text, 0, max_item), again = cut(text, chunks, max_item);
	expect(small.status == again.status && small.items == again.items,
	       "a list in chunks is the same list", text);
	expect(small.status != Status::done || small.envelope == again.envelope,
	       "a list in chunks has the same envelope", text);

	const Cut whole = cut(text, chunks, text.size() + 1);
	bool too_deep = false;
	const Doc doc = parse(text, too_deep);
	if (json_is_object(doc.get()) && whole.status != Status::done)
		expect(has_odd_items(doc.get()), "only a list with items that are no objects is refused", text);
	if (whole.status != Status::done)
		return;
	const Doc together = put_together(whole, too_deep);
	if (too_deep)
		return; // jansson's limit of nesting counts from each piece's own start
	expect(!doc == !together && (!doc || json_equal(doc.get(), together.get())),
	       "envelope and items are the document", text);
}

// ---- lines ----

using Lines = std::vector<std::pair<std::string, bool>>; // text, was cut

void check_lines(std::string_view text, unsigned chunks, std::size_t max_line)
{
	Lines got, wanted;
	LineSplitter<std::function<bool(std::string_view, bool)>> lines(
		[&](std::string_view line, bool was_cut) {
			got.emplace_back(line, was_cut);
			return true;
		},
		max_line);
	feed_in_chunks(text, chunks, [&](std::string_view part) { lines.feed(part); });

	for (std::string_view rest = text; !rest.empty();) {
		const std::size_t end = rest.find('\n');
		const std::string_view line = rest.substr(0, end);
		if (line.size() > max_line)
			wanted.emplace_back(line.substr(0, max_line), true);
		else if (!line.empty() && end != rest.npos)
			wanted.emplace_back(line, false);
		rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
	}
	expect(got == wanted, "a watch is cut at its line ends", text);
}

// ---- managedFields ----

// Is there an object in `tree` of which `without` lacks the managedFields, and nothing else?
bool lacks_one(json_t *tree, json_t *root, json_t *without, int &budget)
{
	if (--budget < 0)
		return true; // too many places to look at: nothing is said
	if (json_is_object(tree) && json_is_array(json_object_get(tree, "managedFields"))) {
		Doc kept(json_incref(json_object_get(tree, "managedFields")));
		json_object_del(tree, "managedFields");
		const bool same = json_equal(root, without);
		json_object_set(tree, "managedFields", kept.get());
		if (same)
			return true;
	}
	const char *key;
	json_t *member;
	std::size_t i;
	void *next;
	json_object_foreach_safe(tree, next, key, member)
		if (lacks_one(member, root, without, budget))
			return true;
	json_array_foreach(tree, i, member)
		if (lacks_one(member, root, without, budget))
			return true;
	return false;
}

void check_managed_fields(std::string_view text)
{
	std::string buffer;
	const std::string_view shorter = without_managed_fields(text, buffer);
	expect(shorter.size() <= text.size(), "cutting makes shorter");
	bool too_deep = false;
	const Doc doc = parse(text, too_deep);
	if (!json_is_object(doc.get()))
		return;
	const Doc left = parse(shorter, too_deep);
	expect(left != nullptr, "without managedFields it is still JSON", text);
	int budget = 200;
	if (!json_equal(doc.get(), left.get()))
		expect(lacks_one(doc.get(), doc.get(), left.get(), budget), "nothing but managedFields is cut", text);
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	Input input(data, size);
	const unsigned chunks = input.byte() % 32;
	const std::size_t limit = 1 + input.byte();
	check_list(input.rest(), chunks, limit);
	check_lines(input.rest(), chunks, limit);
	check_managed_fields(input.rest());
	return 0;
}
