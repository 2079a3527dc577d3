// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The saved ledger: what was read and is written again says the same; only whole lines
// count; a damaged line is told by its number and never skipped.
#include <algorithm>
#include <map>

#include "lib/base/text.h"
#include "lib/core/hold_journal.h"
#include "test/fuzz/fuzz.h"

using namespace sk8;
using namespace sk8::fuzz;
using namespace sk8::core;

// What is said about each pod, as the line that says it.
static std::map<std::string, std::string> by_mark(const Ledger &ledger)
{
	std::map<std::string, std::string> out;
	for (const Hold &h : ledger.holds)
		expect(out.emplace(h.key.mark(), journal_line(h)).second, "a pod holds once", h.key.mark());
	for (const Released &r : ledger.released)
		expect(out.emplace(r.key.mark(), journal_line(r)).second, "what is released is not held", r.key.mark());
	return out;
}

static void check_hold(const Hold &h)
{
	expect(PodKey::from_mark(h.key.mark()) == h.key, "a mark names one pod", h.key.mark());
	expect(!h.node.empty() && h.node.size() <= 255, "a hold is on a node", h.node);
	expect(h.cores.size() <= 65536, "a node has so many cores");
}

static void check_released(const Released &r)
{
	expect(PodKey::from_mark(r.key.mark()) == r.key, "a mark names one pod", r.key.mark());
	expect(!r.by.empty() && r.by.size() <= Released::max_by && is_printable(r.by), "somebody has released it", r.by);
}

int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	const std::string_view text(reinterpret_cast<const char *>(data), size);
	const auto ledger = parse_journal(text);
	const std::string_view whole = text.substr(0, text.find_last_of('\n') + 1);
	const auto acknowledged = parse_journal(whole);
	expect(ledger.ok() == acknowledged.ok(), "a torn last line changes nothing", text);
	if (!ledger) {
		expect_sentence(ledger.error().message, 128);
		return 0;
	}
	const auto wanted = by_mark(*ledger);
	expect(by_mark(*acknowledged) == wanted, "a torn last line is not counted", text);
	std::ranges::for_each(ledger->holds, check_hold);
	std::ranges::for_each(ledger->released, check_released);

	std::string again = "{\"v\":1}\n", freed;
	for (const auto &[mark, line] : wanted) {
		again += line;
		freed += journal_line(*PodKey::from_mark(mark));
	}
	const auto copy = parse_journal(again);
	expect(copy.ok() && by_mark(*copy) == wanted, "what is written is read back", again);
	const auto none = parse_journal(again + freed);
	expect(none.ok() && by_mark(*none).empty(), "what is freed is known no more", again + freed);
	return 0;
}
