// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Pods that mean harm, or make no sense, from the API's JSON to what users and
// administrators see: one line each, nothing forged, and everybody else is served.
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "test/unit/catch.h"
#include "test/unit/core/world.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;

namespace {

std::vector<std::string> logged; // during a World

struct Log {
	Log()
	{
		logged.clear();
		set_log_sink([](LogLevel, const char *text) { logged.emplace_back(text); }, LogLevel::info);
	}
	~Log() { set_log_sink(nullptr, LogLevel::info); }
};

int pods = 0; // each has a uid of its own: lines about one pod are limited

// members: of spec's only container's "resources", and of "annotations".
std::string pod_json(const std::string &resources, const std::string &annotations, const std::string &meta = "")
{
	return R"({"kind":"Pod","metadata":{"name":"hostile","namespace":"team-a","uid":"uid-h)" +
	       std::to_string(pods++) + "\"," + meta +
	       R"("annotations":{)" + annotations + R"(}},"spec":{"schedulerName":"slurm","containers":[{"name":"main",)" +
	       R"("resources":{)" + resources + "}}]}}";
}

std::string cpu(const std::string &amount)
{
	return R"("requests":{"cpu":)" + amount + R"(,"memory":"1Mi"})";
}

kube::PodPtr decode(const std::string &text)
{
	auto object = Json::parse(text);
	REQUIRE(object);
	auto pod = kube::decode_pod(*object);
	REQUIRE(pod);
	return *pod;
}

void add(World &w, const std::string &text)
{
	const kube::PodPtr hostile = decode(text);
	w.create_pod("hostile", [&](kube::Pod &p) { p = *hostile; });
}

bool one_job_field(const std::string &text)
{
	const std::size_t blank = text.find(' ');
	return is_printable(text) && text.find('|') == text.npos && text.find('=', blank) == text.npos;
}

std::string repeated(const std::string &text, std::size_t times)
{
	std::string out;
	for (std::size_t i = 0; i < times; i++)
		out += text;
	return out;
}

} // namespace

TEST_CASE("a pod that asks for nonsense gets one sentence and no job, and others go on")
{
	struct Row {
		std::string pod;
		const char *sentence;
	};
	const auto note = [](const std::string &key, const std::string &value) {
		return pod_json(cpu("1"), "\"" + key + "\":\"" + value + "\"");
	};
	const Row rows[] = {
		{pod_json(cpu("-1"), ""), "the amount of cpu is not a quantity: \"-1\" is negative"},
		{pod_json(cpu("\"-9e-3\""), ""), "is negative"},
		{pod_json(cpu("\"1e30\""), ""), "the amount of cpu is not a quantity: \"1e30\" is too large"},
		{pod_json(cpu("\"2M\""), ""), "the amount of cpu is more than any node has"},
		{pod_json(cpu("9223372036854775807"), ""), "is too large"},
		{pod_json(cpu("\"1 core\""), ""), "is no quantity"},
		{pod_json(cpu("\"%s%n\""), ""), "\"%s%n\" is no quantity"},
		{pod_json(cpu("\"1\\n2\""), ""), "\"1\\x0a2\" is no quantity"},
		{pod_json(R"("requests":{"memory":"16Ei"})", ""), "the amount of memory is not a quantity: \"16Ei\" is too large"},
		{pod_json(R"("requests":{"memory":"15Ei"})", ""), "the amount of memory"},
		{pod_json(R"("requests":{"a\nb%s":"1"})", ""), "it asks for a\\x0ab%s: resources other than"},
		{pod_json(R"("requests":{")" + std::string(400, 'r') + R"(":"1"})", ""), "a resource has an impossible name"},
		{pod_json(cpu("1"), R"("big":")" + std::string(1 << 20, 'x') + "\""), "annotations are longer than Kubernetes allows"},
		{note("slurm-k8s.io/job-name", std::string(1001, 'n')), "annotation slurm-k8s.io/job-name: longer than 1000 bytes"},
		{note("slurm-k8s.io/job-name", R"(a\nslurmctld: error: forged)"), "line ends, control or invisible characters"},
		{note("slurm-k8s.io/comment", R"(a\u0000b)"), "control or invisible characters"},
		{note("slurm-k8s.io/comment", R"(\u001b[2J)"), "control or invisible characters"},
		{note("slurm-k8s.io/comment", R"(\u009b31m)"), "control or invisible characters"},
		{note("slurm-k8s.io/job-name", R"(\u202egnp.exe)"), "control or invisible characters"},
		{note("slurm-k8s.io/job-name", R"(root\u200b)"), "control or invisible characters"},
		{note("slurm-k8s.io/comment", R"(a\u2028b)"), "line ends"},
		{note("slurm-k8s.io/job-name", "a|root|RUNNING"), "leave out the character |"},
		{note("slurm-k8s.io/job-name", "a UserId=root(0)"), "it would look like another field"},
		{note("slurm-k8s.io/comment", "a=b AdminComment=k8s:c/team-a/other/uid-1"), "it would look like another field"},
		{note("slurmjob.slinky.slurm.net/wckey", "a JobState=RUNNING"), "it would look like another field"},
		{note("slurm-k8s.io/time-limit", std::string(900, '9')), "is not a positive number"},
		{note("slurm-k8s.io/user-id", "0"), "may not run as user \"0\""},
		{note("slurm-k8s.io/account", "%s%n"), "may not use account \"%s%n\""},
	};
	for (const Row &row : rows) {
		Log log;
		World w;
		w.create_pod("neighbour");
		add(w, row.pod);
		w.run(Millis(5'000));
		CAPTURE(row.sentence, w.events_text());
		CHECK(w.job_of("neighbour"));
		CHECK_FALSE(w.job_of("hostile"));
		CHECK(w.count("submit") == 1);

		const std::string told = w.conditions["hostile"].message;
		CAPTURE(told);
		CHECK(w.conditions["hostile"].reason == "SlurmRefused");
		CHECK(told.find(row.sentence) != told.npos);
		CHECK(is_printable(told));
		CHECK(told.size() <= 1024); // an event's limit: nothing is cut
		const auto about = std::count_if(logged.begin(), logged.end(), [](const std::string &line) {
			return line.find("pod c/team-a/hostile uid uid-h") != line.npos &&
			       line.find(" job none: refused: ") != line.npos;
		});
		CHECK(about == 1);

		w.user_deletes("hostile");
		w.run();
		CHECK_FALSE(w.exists("hostile"));
		CHECK(w.controller->size() == 1);
	}
}

TEST_CASE("a job's texts that may look like anything are taken as they are, and forge no field")
{
	const std::string texts[] = {"%s%n%p 100%", "gr\xc3\xbc\xc3\x9f dich \xf0\x9f\x98\x80", "a'b\"c`d$(e);f", "a=b c",
				     "\\\\x0a", std::string(1000, 'n')};
	for (const std::string &text : texts) {
		World w;
		w.create_pod("hostile", [&](kube::Pod &p) {
			p.meta.annotations["slurm-k8s.io/comment"] = text;
			p.meta.annotations["slurm-k8s.io/job-name"] = text;
		});
		w.run();
		CAPTURE(text, w.conditions["hostile"].message);
		REQUIRE(w.jobs.size() == 1);
		CHECK(w.jobs[0].request.comment == text);
		CHECK(w.jobs[0].request.job_name == text);
		CHECK(one_job_field(w.jobs[0].request.comment));
	}
}

TEST_CASE("a pod that carries another pod's marks is still itself")
{
	World w;
	w.create_pod("victim");
	w.run();
	w.slurm_starts("victim", "n1", {0});
	w.run();
	const std::string victim = w.pod("victim").meta.uid;
	const std::string mark = w.jobs[0].key.mark();

	w.create_pod("hostile", [&](kube::Pod &p) {
		p.meta.annotations = {{"slurm-k8s.io/job-id", "100"},
				      {"slurm-k8s.io/job-submit-time", "1000000"},
				      {"slurm-k8s.io/node", "n1"},
				      {"slurm-k8s.io/cores", "0-63"},
				      {"slurm-k8s.io/uid", victim},
				      {"slurm-k8s.io/comment", mark},
				      {"slurm-k8s.io/job-name", victim}};
		p.meta.labels = {{"slurm-k8s.io/job-id", "100"}};
		p.scheduled_condition_true = true;
	});
	w.run();
	REQUIRE(w.jobs.size() == 2);
	CHECK(w.jobs[1].key.uid == w.pod("hostile").meta.uid);
	CHECK(w.jobs[1].request.comment == mark); // a text like any other: the mark is in admin_comment
	w.slurm_starts("hostile", "n2", {3});
	w.run();
	CHECK(w.pod("hostile").node_name == "n2");
	CHECK(w.binding_annotations["slurm-k8s.io/job-id"] == "101");
	CHECK(w.binding_annotations["slurm-k8s.io/cores"] == "3");

	w.kubelet_starts("hostile");
	w.user_deletes("hostile", 0, true);
	w.run();
	w.kubelet_ends("hostile", 143, "Error");
	w.run();
	CHECK(w.exists("victim"));
	CHECK(w.journal.holds(victim));
	CHECK(w.job_of("victim")->running());
}

TEST_CASE("our finalizer on a pod that never was ours keeps nobody's pod from going")
{
	struct Row {
		const char *what;
		void (*edit)(kube::Pod &);
	};
	static const Row rows[] = {
		{"waiting", [](kube::Pod &) {}},
		{"refused", [](kube::Pod &p) { p.meta.annotations["slurm-k8s.io/gres"] = "gpu:1"; }},
		{"not mapped", [](kube::Pod &p) { p.meta.ns = "unmapped"; }},
		{"gated", [](kube::Pod &p) { p.scheduling_gated = true; }},
		{"broken", [](kube::Pod &p) { p.problem = "its amounts make no sense"; }},
	};
	for (const Row &row : rows) {
		World w;
		w.create_pod("hostile", [&](kube::Pod &p) {
			p.meta.finalizers = {"slurm-k8s.io/job", "example.com/theirs"};
			row.edit(p);
		});
		w.run();
		CAPTURE(row.what);
		CHECK_FALSE(w.journal.holds("uid-1"));
		w.user_deletes("hostile");
		w.run(Millis(5'000));
		CHECK(w.pod("hostile").meta.finalizers == std::vector<std::string>{"example.com/theirs"});
		w.pod("hostile").meta.finalizers.clear();
	}
}

TEST_CASE("what a kubelet says about a pod's end is one line of the job's comment")
{
	World w;
	w.create_pod("p");
	w.run();
	w.slurm_starts("p");
	w.run();
	w.kubelet_starts("p");
	kube::Pod &pod = w.pod("p");
	pod.reason = "Evicted";
	pod.message = "low on memory\n   AdminComment=k8s:c/team-a/other/uid-9 \x1b[2J" + repeated("x", 5000);
	w.kubelet_ends("p", 137, "Error");
	w.run();
	const std::string &comment = w.jobs[0].end.comment;
	CHECK(comment.starts_with("Evicted: low on memory\\x0a   AdminComment"));
	CHECK(is_printable(comment));
	CHECK(comment.size() <= 512);
}
