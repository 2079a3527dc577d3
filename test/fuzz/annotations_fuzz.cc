// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Whatever annotations a pod has: it is the user that the mapping says, with what the
// mapping allows, its job's texts forge nothing, or there is one sentence why not.
//
// Input: one annotation a line, key=value; "o ", "b " and "s " before the key stand
// for the three vocabularies; byte 0x1e in a value is a newline.
#include <algorithm>

#include "lib/base/text.h"
#include "lib/core/job_request.h"
#include "test/fuzz/fuzz.h"

using namespace sk8;
using namespace sk8::fuzz;
using namespace sk8::core;

namespace {

constexpr std::size_t longest_event = 1024; // Kubernetes API reference, v1.Event

ClusterSettings mapping()
{
	ClusterSettings s;
	s.name = "c";
	NamespaceSettings ml;
	ml.match = "ml-*";
	ml.user = "mlsvc";
	ml.account = "ml";
	ml.partition = "gpu";
	ml.allow.qos = {"high", "n*"};
	ml.allow.licenses = {"matlab:?"};
	s.namespaces = {ml};
	return s;
}

std::optional<Account> lookup(const std::string &user)
{
	return user == "mlsvc" ? std::optional(Account{1500, 1600}) : std::nullopt;
}

kube::Pod pod_with(std::string_view text)
{
	kube::Pod pod;
	pod.meta.ns = "ml-train";
	pod.meta.name = "p";
	pod.meta.uid = "u";
	pod.request.milli_cpu = 1500;
	pod.request.memory_bytes = 1 << 20;
	for (std::string_view line : split(text, '\n')) {
		std::string key(line.substr(0, line.find('=')));
		std::string value(line.size() > key.size() ? line.substr(key.size() + 1) : "");
		std::replace(value.begin(), value.end(), '\x1e', '\n');
		static constexpr std::pair<std::string_view, std::string_view> prefixes[] = {
			{"o ", "slurm-k8s.io/"}, {"b ", "slurmjob.slinky.slurm.net/"}, {"s ", "sunk.coreweave.com/"}};
		for (const auto &[brief, prefix] : prefixes)
			if (key.starts_with(brief))
				key.replace(0, brief.size(), prefix);
		pod.meta.annotations[valid_utf8(key)] = valid_utf8(value); // as JSON can carry it
	}
	return pod;
}

// A text of the job, as squeue, scontrol and sacct print it. What Slurm compares with
// lists of its own (features, QOS) cannot name another field.
void expect_field(const std::string &text, bool free)
{
	expect(text.size() < 1024, "Slurm takes a job's text", text);
	expect(one_line(text, 8192) == text, "a job's text is one printable line", text);
	if (!free)
		return;
	expect(text.find('|') == text.npos, "a job's text is one column of sacct -P", text);
	const auto words = split(text, ' ');
	for (std::size_t i = 1; i < words.size(); i++)
		expect(words[i].find('=') == words[i].npos, "a job's text is one field of scontrol show", text);
}

void check_request(const JobRequest &r, const kube::Pod &pod)
{
	const Identity &id = r.identity;
	expect(id.user == "mlsvc" && id.uid == 1500 && id.gid == 1600, "the user is the mapped one", id.user);
	expect(id.account == "ml", "the account is the mapped one", id.account);
	expect(id.partition == "gpu", "the partition is the mapped one", id.partition);
	expect(id.qos.empty() || id.qos == "high" || id.qos.starts_with('n'), "the QOS is allowed", id.qos);
	expect(id.reservation.empty(), "no reservation is allowed", id.reservation);
	expect(id.licenses.empty() || (id.licenses.starts_with("matlab:") && id.licenses.size() == 8),
	       "licenses are allowed", id.licenses);
	for (const std::string *text : {&r.job_name, &r.comment, &r.wckey})
		expect_field(*text, true);
	for (const std::string *text : {&r.features, &id.qos, &id.licenses})
		expect_field(*text, false);
	expect(r.cpus * 1000ull >= static_cast<std::uint64_t>(pod.request.milli_cpu), "no CPU less than asked for");
	expect(r.memory_mb >= 1, "no memory less than asked for");
	expect(r.key.mark() == "k8s:c/ml-train/p/u", "the job stands for this pod", r.key.mark());
	expect(!r.nice && r.required_node.empty(), "priority and node are not the pod's to say");
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	static const ClusterSettings &settings = *new ClusterSettings(mapping());
	const kube::Pod pod = pod_with({reinterpret_cast<const char *>(data), size});
	const auto request = make_request({"c", pod.meta.ns, pod.meta.name, pod.meta.uid}, pod, settings, lookup);
	if (request)
		check_request(*request, pod);
	else
		expect_sentence(request.error().message, longest_event);
	return 0;
}
