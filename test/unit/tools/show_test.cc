// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "tools/show.h"

#include <cstdlib>
#include <ctime>

#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::tools;

namespace {

const char answer[] = R"({"ok":true,"version":"1.0","slurm_version":"22.05.8","slurm_cluster":"stand","pid":7,"time":1000100,
"state":"running","since":1000000,"debug":"debug","configuration":{"file":"/etc/f.yaml","read_at":1000001,"errors":[]},
"masks":[{"cores":[0,1],"more_cores":1,"memory_mb":200,"node":"n1","whole":false,"foreign_milli_cpu":2500},
	{"cores":[],"more_cores":0,"memory_mb":0,"node":"n9","whole":true},
	{"cores":[],"more_cores":0,"memory_mb":0,"node":"n8","whole":true,"for_a_while":true},
	{"cores":[],"more_cores":0,"memory_mb":0,"node":"n7","whole":true,"for_a_while":true,"for_a_moment":true}],"masked_nodes":7,
"troubles":[{"at":1000002,"times":3,"level":"error","text":"no\u001bway"}],
"clusters":[{"name":"prod","state":"running","server":"https://api","connected_since":1000003,
	"watches":[{"what":"nodes","state":"lost","since":1000050,"heard":1000040,"error":"refused"}],
	"node":{"in_slurm":"drained by slurm-k8s: cordoned; 1 job left","in_kubernetes":"cordoned by an administrator",
		"features":"k8s.zone.a; 1 label is left out","trouble":"refused"},
	"missing_rights":["create pods/binding"],
	"foreign_summary":{"held":4,"unproved":1,"lost":1},
	"foreign":[{"namespace":"sys","name":"agent","uid":"f","node":"n1","milli_cpu":1050,"memory_mb":70,"why":"vanished"}],
	"summary":{"pods":{"waiting":3,"bound":10},"jobs":{"queued":3},"held":11,"masked":1},
	"pods":[{"namespace":"a","name":"p","uid":"u","pod":"leaving","job":"ended","next":"delete_pod","node":"n1","job_id":12,
		"phase":"Running","deleting":true,"failures":2,"retry_in_ms":3000,"trouble":"no answer","why":"the kubelet says nothing",
		"holds":{"cores":[0,1],"more_cores":1,"memory_mb":200,"node":"n1","masked":true}}]},
	{"name":"other","state":"hanging","busy_ms":12000}]})";

Json parsed()
{
	::setenv("TZ", "UTC", 1);
	::tzset();
	auto j = Json::parse(answer);
	REQUIRE(j);
	return *j;
}

bool contains(const std::string &text, const std::string &part)
{
	return text.find(part) != text.npos;
}

} // namespace

TEST_CASE("show: columns line up, and the last one is not padded")
{
	CHECK(table({{"A", "LONG", "X"}, {"bbb", "c", "dd"}}, " ") == " A    LONG  X\n bbb  c     dd\n");
}

TEST_CASE("show: status says state, connections, counts, masks and errors")
{
	const std::string text = show_status(parsed());
	CAPTURE(text);
	CHECK(contains(text, "slurm-k8s 1.0 in slurmctld 22.05.8 (pid 7) of Slurm cluster stand: running since 1970-01-12 13:46:40\n"));
	CHECK(contains(text, "debug flag: debug"));
	CHECK(contains(text, "cluster prod: running, connected since 1970-01-12 13:46:43, https://api\n"));
	CHECK(contains(text, "watch of nodes  lost since 1970-01-12 13:47:30, last heard 60 s ago: refused\n"));
	CHECK(contains(text, "pods  3 waiting, 10 bound\n"));
	CHECK(contains(text, "cluster other: hanging, its engine has not answered; busy for 12 s\n"));
	CHECK(contains(text, "n1    3 + 2.5 CPUs  200M\n"));
	CHECK(contains(text, "n9    all           until Kubernetes has told what runs there\n"));
	CHECK(contains(text, "n7    all           until Kubernetes has told what runs there, or 5 s after slurmctld's start: the saved ledger"));
	CHECK(contains(text, "n8    all           until Kubernetes has told what runs there, or 30 s after slurmctld's start: "
			     "no saved ledger says that there are pods\n"));
	CHECK(contains(text, "missing right: create pods/binding (slurm-k8s check"));
	CHECK(contains(text, "foreign  4 pods of others are masked, 1 of them gone and 1 lost\n"));
	CHECK(contains(text, "n1    sys/agent  foreign  -    1.05 CPUs  70M     vanished\n"));
	CHECK(contains(text, "and 3 more nodes\n"));
	CHECK(contains(text, "n1    a/p        leaving  12   3          200M    the kubelet says nothing\n"));
	CHECK(contains(text, "error  no\\x1bway (3 times)\n")); // no escape reaches the terminal
}

TEST_CASE("show: cores that a pod of others has alone are named, beside what it takes of the rest")
{
	auto status = Json::parse(R"({"clusters":[{"name":"prod","foreign":[
		{"namespace":"sys","name":"own","node":"n1","cores":[2,3],"milli_cpu":0,"memory_mb":8},
		{"namespace":"sys","name":"both","node":"n1","cores":[5],"milli_cpu":500,"memory_mb":8}]}]})");
	REQUIRE(status);
	const std::string text = show_status(*status);
	CAPTURE(text);
	CHECK(contains(text, "sys/own   foreign  -    core 2,3           8M"));
	CHECK(contains(text, "sys/both  foreign  -    core 5 + 0.5 CPUs  8M"));
}

TEST_CASE("show: a node says which pods have other devices than their jobs")
{
	auto status = Json::parse(R"({"clusters":[{"name":"prod","node":{"in_slurm":"in use","other_devices":["job 7 \u001bhas","job 8"]}}]})");
	REQUIRE(status);
	CHECK(contains(show_node(*status, "n1"), "other devices: job 7 \\x1bhas\nother devices: job 8\n"));
}

TEST_CASE("show: a node says for which job it is emptied")
{
	auto status = Json::parse(R"({"clusters":[{"name":"prod","node":{"in_slurm":"in use","exclusive":["is emptied for \u001bjob 7"]}}]})");
	REQUIRE(status);
	CHECK(contains(show_node(*status, "n1"), "exclusive: is emptied for \\x1bjob 7\n"));
}

TEST_CASE("show: a configuration that is not used is told with its lines")
{
	Json status = parsed();
	Json config = Json::object();
	Json errors = Json::array();
	errors.append(Json::string("f.yaml:3: clusters: missing"));
	config.set("file", "f.yaml").set("read_at", Json::integer(5)).set("errors", errors);
	status.set("configuration", config).set("state", "bad configuration");
	const std::string text = show_status(status);
	CHECK(contains(text, ": bad configuration since"));
	CHECK(contains(text, "is not used because of its mistakes:\n  f.yaml:3: clusters: missing\n"));
}

TEST_CASE("show: a node says what pods hold there and what counts it")
{
	const std::string text = show_node(parsed(), "n1");
	CAPTURE(text);
	CHECK(contains(text, "in Slurm: drained by slurm-k8s: cordoned; 1 job left\n"
			     "in Kubernetes: cordoned by an administrator\nfeatures by labels: k8s.zone.a; 1 label is left out\n"
			     "tried again: refused\n"));
	CHECK(contains(text, "masked on node n1: 3 cores + 2.5 CPUs, 200M\n"));
	CHECK(contains(text, "a/p        leaving  12   3          200M    a mask      the kubelet says nothing\n"));
	CHECK(contains(text, "the engine of cluster other does not answer\n"));
	CHECK(contains(show_node(parsed(), "n9"), "node n9 takes no job until Kubernetes has told"));
}

TEST_CASE("show: a pod says where it stands in the table and what is in its way")
{
	const std::string text = show_pod(parsed());
	CAPTURE(text);
	CHECK(contains(text, "a/p (u) of cluster prod\n"));
	CHECK(contains(text, "pod state  leaving, phase Running, being deleted\n"));
	CHECK(contains(text, "job state  ended, job 12\n"));
	CHECK(contains(text, "next       delete_pod\n"));
	CHECK(contains(text, "holds      3 cores and 200M on node n1, as a mask\n"));
	CHECK(contains(text, "failed     2 times in a row, next try in 3 s\n"));
	CHECK(show_pod(Json::object()).empty());
}
