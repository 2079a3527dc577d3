// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the kubelet's device manager keeps, and what device plugins answered it: nothing that a step must not be given gets out of
// either, and never more than there is room for. An input is a checkpoint, or the message of one answer.
#include "lib/agent/device_manager.h"
#include "lib/base/text.h"
#include "test/fuzz/fuzz.h"

using namespace sk8;
using namespace sk8::agent;
using namespace sk8::fuzz;

static void check_answer(const DeviceAnswer &answer)
{
	expect(answer.variables.size() <= max_variables && answer.nodes.size() <= max_device_nodes, "no more than there is room for");
	for (const auto &[name, value] : answer.variables) {
		expect(may_be_given(name), "a variable may be given", name);
		expect(value.size() <= max_value, "a value is short");
		expect(value.find_first_of(std::string_view("\0\n\r\x1b", 4)) == value.npos, "a value is one line", value);
	}
	for (const auto &node : answer.nodes)
		expect(node.starts_with("/dev/") && (node + "/").find("/../") == node.npos && node.find_first_of(", \n=") == node.npos,
		       "a node is below /dev", node);
}

int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	const std::string_view text(reinterpret_cast<const char *>(data), size);
	check_answer(parse_allocate_response(text));
	check_answer(parse_allocate_response(base64_encode(text)));
	const DeviceManager manager = parse_device_manager(text);
	for (const auto &[uid, of_pod] : manager.answers)
		for (const auto &[resource, answer] : of_pod) {
			expect(manager.pods.contains(uid) && manager.pods.at(uid).contains(resource), "an answer is about devices");
			for (const auto &node : answer.nodes)
				expect(node.starts_with("/dev/"), "a node is below /dev", node);
		}
	return 0;
}
