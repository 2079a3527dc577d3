// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The saved ledger: what was read and is written again says the same; only whole lines
// count; a damaged line is told by its number and never skipped.
#include <algorithm>
#include <map>

#include "lib/core/hold_journal.h"
#include "test/fuzz/fuzz.h"

using namespace sk8;
using namespace sk8::fuzz;
using namespace sk8::core;

static std::map<std::string, Hold> by_mark(const std::vector<Hold> &holds)
{
	std::map<std::string, Hold> out;
	for (const Hold &h : holds)
		expect(out.emplace(h.key.mark(), h).second, "a pod holds once", h.key.mark());
	return out;
}

static void check_hold(const Hold &h)
{
	expect(PodKey::from_mark(h.key.mark()) == h.key, "a mark names one pod", h.key.mark());
	expect(!h.node.empty() && h.node.size() <= 255, "a hold is on a node", h.node);
	expect(h.cores.size() <= 65536, "a node has so many cores");
}

int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	const std::string_view text(reinterpret_cast<const char *>(data), size);
	const auto holds = parse_journal(text);
	const std::string_view whole = text.substr(0, text.find_last_of('\n') + 1);
	const auto acknowledged = parse_journal(whole);
	expect(holds.ok() == acknowledged.ok(), "a torn last line changes nothing", text);
	if (!holds) {
		expect_sentence(holds.error().message, 128);
		return 0;
	}
	const auto wanted = by_mark(*holds);
	expect(by_mark(*acknowledged) == wanted, "a torn last line is not counted", text);

	std::string again = "{\"v\":1}\n", freed;
	for (const auto &[mark, h] : wanted) {
		check_hold(h);
		again += journal_line(h);
		freed += journal_line(h.key);
	}
	const auto copy = parse_journal(again);
	expect(copy.ok() && by_mark(*copy) == wanted, "what is written is read back", again);
	const auto none = parse_journal(again + freed);
	expect(none.ok() && none->empty(), "what is freed is held no more", again + freed);
	return 0;
}
