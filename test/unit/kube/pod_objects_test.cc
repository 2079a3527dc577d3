// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include <string>

#include "lib/kube/objects.h"
#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::kube;

namespace {

Result<PodPtr> decode(const std::string &text)
{
	Result<Json> j = Json::parse(text);
	REQUIRE(j.ok());
	return decode_pod(*j);
}

// A pod with these members of metadata, spec and status.
Pod pod(const std::string &spec, const std::string &status = "", const std::string &meta = "")
{
	auto p = decode(R"({"metadata":{"name":"p","namespace":"ns","uid":"u-1")" + meta +
			R"(},"spec":{)" + spec + R"(},"status":{)" + status + "}}");
	REQUIRE(p.ok());
	return **p;
}

std::string repeat(const std::string &text, int times)
{
	std::string out;
	for (int i = 0; i < times; i++)
		out += (i ? "," : "") + text;
	return out;
}

const char *const full = R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-1","namespace":"ml",
	"uid":"3f0c-11","resourceVersion":"1234","labels":{"app":"web"},"annotations":{"a/b":"c"},
	"finalizers":["x/y"],"creationTimestamp":"2026-08-01T10:00:00Z",
	"deletionTimestamp":"2026-08-01T10:01:00Z","deletionGracePeriodSeconds":20,
	"ownerReferences":[{"kind":"X","name":"no"},{"kind":"ReplicaSet","name":"web","controller":true}]},
	"spec":{"schedulerName":"slurm","nodeName":"n1","restartPolicy":"Never",
	"schedulingGates":[{"name":"g"}],"priorityClassName":"high","priority":1000,
	"terminationGracePeriodSeconds":5,"activeDeadlineSeconds":60,"serviceAccountName":"sa",
	"resourceClaims":[{"name":"c"}],"nodeSelector":{"disk":"ssd"},
	"containers":[{"name":"a","ports":[{"hostPort":80,"containerPort":8080},
	{"hostPort":53,"protocol":"UDP","hostIP":"10.0.0.1"},{"containerPort":9}]}],
	"initContainers":[{"name":"s","restartPolicy":"Always","ports":[{"hostPort":81}]},
	{"name":"i","ports":[{"hostPort":82}]}],
	"tolerations":[{"key":"k","operator":"Exists","effect":"NoSchedule"}],
	"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}},
	{"name":"tmp","ephemeral":{"volumeClaimTemplate":{}}},{"name":"e","emptyDir":{}}],
	"topologySpreadConstraints":[{"whenUnsatisfiable":"DoNotSchedule"}],
	"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{
	"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}],
	"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]},{}]}},
	"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"x"}]}}},
	"status":{"phase":"Failed","reason":"DeadlineExceeded","message":"too long",
	"startTime":"2026-08-01T10:00:05Z","conditions":[{"type":"PodScheduled","status":"False",
	"reason":"SlurmPending","message":"waits"},{"type":"PodReadyToStartContainers","status":"False"}],
	"initContainerStatuses":[{"name":"i","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}],
	"containerStatuses":[{"name":"a","containerID":"containerd://0a1b","state":{"terminated":
	{"exitCode":137,"signal":9,"reason":"OOMKilled","finishedAt":"2026-08-01T10:00:30Z"}}}],
	"ephemeralContainerStatuses":[{"name":"d","state":{"waiting":{"reason":"ContainerCreating","message":"soon"}}}]}})";

} // namespace

TEST_CASE("every field of a pod that we use is decoded")
{
	auto decoded = decode(full);
	REQUIRE(decoded.ok());
	const Pod &p = **decoded;
	CHECK(p.problem == "");

	CHECK(p.meta.ns == "ml");
	CHECK(p.meta.name == "web-1");
	CHECK(p.meta.uid == "3f0c-11");
	CHECK(p.meta.resource_version == "1234");
	CHECK(p.meta.labels.at("app") == "web");
	CHECK(p.meta.annotations.at("a/b") == "c");
	CHECK(p.meta.finalizers == std::vector<std::string>{"x/y"});
	CHECK(p.meta.creation_time == 1785578400);
	CHECK(p.meta.deleting);
	CHECK(p.meta.deletion_time == 1785578460);
	CHECK(p.meta.deletion_grace_seconds == 20);
	CHECK(p.meta.controller_kind == "ReplicaSet");
	CHECK(p.meta.controller_name == "web");

	CHECK(p.scheduler_name == "slurm");
	CHECK(p.node_name == "n1");
	CHECK(p.scheduling_gated);
	CHECK(p.restart_policy == "Never");
	CHECK(p.priority_class == "high");
	CHECK(p.priority == 1000);
	CHECK(p.grace_seconds == 5);
	CHECK(p.active_deadline_seconds == 60);
	CHECK(p.service_account == "sa");
	CHECK(p.resource_claims.size() == 1);
	CHECK(p.node_selector.at("disk") == "ssd");
	CHECK(p.has_topology_spread);
	CHECK(p.has_required_pod_affinity);
	CHECK_FALSE(p.in_pod_group);
	CHECK(p.claims == std::vector<std::string>{"data", "web-1-tmp"});

	REQUIRE(p.required_node_terms.size() == 1); // the empty term matches nothing
	CHECK(p.has_required_node_affinity);
	REQUIRE(p.required_node_terms[0].size() == 2);
	CHECK(p.required_node_terms[0][0].values == std::vector<std::string>{"a", "b"});
	CHECK_FALSE(p.required_node_terms[0][0].field);
	CHECK(p.required_node_terms[0][1].field);
	REQUIRE(p.tolerations.size() == 1);
	CHECK(p.tolerations[0].op == TolerationOperator::exists);
	CHECK(p.tolerations[0].effect == TaintEffect::no_schedule);
	REQUIRE(p.host_ports.size() == 3); // those of an ordinary init container do not stay
	CHECK(p.host_ports[0].port == 80);
	CHECK(p.host_ports[0].protocol == "TCP");
	CHECK(p.host_ports[1].ip == "10.0.0.1");
	CHECK(p.host_ports[2].port == 81);

	CHECK(p.phase == "Failed");
	CHECK(p.reason == "DeadlineExceeded");
	CHECK(p.message == "too long");
	CHECK(p.started_at == 1785578405);
	CHECK_FALSE(p.scheduled_condition_true);
	CHECK(p.scheduled_reason == "SlurmPending");
	CHECK(p.gets_final_phase);
	REQUIRE(p.containers.size() == 3);
	CHECK(p.containers[0].init);
	CHECK_FALSE(p.containers[0].started_ever);
	CHECK(p.containers[1].state == ContainerStatus::State::terminated);
	CHECK(p.containers[1].exit_code == 137);
	CHECK(p.containers[1].signal == 9);
	CHECK(p.containers[1].reason == "OOMKilled");
	CHECK(p.containers[1].finished_at == 1785578430);
	CHECK(p.containers[1].started_ever);
	CHECK(p.containers[1].id == "0a1b");
	CHECK(p.containers[2].state == ContainerStatus::State::waiting);
	CHECK(p.containers[2].reason == "ContainerCreating");
	CHECK(p.containers[2].message == "soon");
}

TEST_CASE("pod: its kubelet has admitted it when it tells of its containers, and not when it has only seen it")
{
	const std::string began = R"("startTime":"2026-08-01T10:00:05Z")", sees = R"(,"observedGeneration":1)";
	const std::string waits = R"(,"conditions":[{"type":"PodScheduled","status":"True"},{"type":"Initialized","status":"False"}])";
	const struct {
		std::string what, status;
		bool admitted;
	} rows[] = {
		{"nobody has seen it", R"("phase":"Pending")", false},
		{"it is refused, which a kubelet says later that does not know yet what runs", R"("phase":"Pending",)" + began + sees, false},
		{"the same, and who bound it said so", R"("phase":"Pending",)" + began + R"(,"conditions":[{"type":"PodScheduled","status":"True"}])",
		 false},
		{"its containers are waiting for volumes", R"("phase":"Pending",)" + began + waits, true},
		{"it runs", R"("phase":"Running",)" + began + waits, true},
		{"it was refused", R"("phase":"Failed","reason":"OutOfcpu",)" + began, false},
		{"it has ended", R"("phase":"Succeeded",)" + began + waits, false},
		{"it was evicted", R"("phase":"Failed","reason":"Evicted",)" + began + waits, false},
		{"somebody else has written its conditions", R"("phase":"Pending")" + waits, false},
	};
	for (const auto &row : rows) {
		INFO(row.what);
		const auto object = Json::parse(R"({"metadata":{"name":"a","namespace":"b","uid":"u"},"spec":{},"status":{)" + row.status + "}}");
		REQUIRE(object.ok());
		const auto pod = decode_pod(*object);
		REQUIRE(pod.ok());
		CHECK((*pod)->admitted == row.admitted);
	}
}

TEST_CASE("a pod that says nothing gets Kubernetes' defaults")
{
	Pod p = pod("");
	CHECK(p.problem == "");
	CHECK(p.grace_seconds == 30);
	CHECK_FALSE(p.active_deadline_seconds.has_value());
	CHECK_FALSE(p.meta.deleting);
	CHECK_FALSE(p.has_required_node_affinity);
	CHECK(p.phase == "");
}

TEST_CASE("what is no pod, or has no usable name or uid, is an error")
{
	const std::string long_name(254, 'a');
	for (const std::string &text : {
		     std::string("null"), std::string("[]"), std::string("{}"),
		     std::string(R"({"metadata":[]})"),
		     std::string(R"({"kind":"Node","metadata":{"name":"n","uid":"u"}})"),
		     std::string(R"({"metadata":{"name":"n"}})"),
		     std::string(R"({"metadata":{"uid":"u"}})"),
		     std::string(R"({"metadata":{"name":"","uid":"u"}})"),
		     std::string(R"({"metadata":{"name":5,"uid":"u"}})"),
		     std::string(R"({"metadata":{"name":"a/b","uid":"u"}})"),
		     std::string(R"({"metadata":{"name":"..","uid":"u"}})"),
		     std::string(R"({"metadata":{"name":"a\nb","uid":"u"}})"),
		     std::string(R"({"metadata":{"name":"n","uid":"u","namespace":"a b"}})"),
		     R"({"metadata":{"name":")" + long_name + R"(","uid":"u"}})"}) {
		INFO(text);
		CHECK_FALSE(decode(text).ok());
	}
}

TEST_CASE("what is out of bounds becomes a problem of the pod")
{
	const std::string term = R"({"matchExpressions":[{"key":"k","operator":"Exists"}]})";
	auto affinity = [](const std::string &terms) {
		return R"("affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":)"
		       R"({"nodeSelectorTerms":[)" + terms + "]}}}";
	};
	struct Row {
		const char *what;
		std::string spec, status, meta;
	};
	const Row rows[] = {
		{"long label", "", "", R"(,"labels":{"a":")" + std::string(64, 'x') + "\"}"},
		{"long annotations", "", "",
		 R"(,"annotations":{"a":")" + std::string(max_annotation_bytes, 'x') + "\"}"},
		{"many finalizers", "", "", R"(,"finalizers":[)" + repeat("\"f\"", 1025) + "]"},
		{"many terms", affinity(repeat(term, 257)), "", ""},
		{"no term that matches", affinity("{}"), "", ""},
		{"no terms", affinity(""), "", ""},
		{"unknown operator",
		 affinity(R"({"matchExpressions":[{"key":"k","operator":"Near"}]})"), "", ""},
		{"long scheduler", R"("schedulerName":")" + std::string(254, 's') + "\"", "", ""},
		{"many tolerations", R"("tolerations":[)" + repeat("{}", 1025) + "]", "", ""},
		{"many volumes", R"("volumes":[)" + repeat("{}", 1025) + "]", "", ""},
		{"host port", R"("containers":[{"ports":[{"hostPort":70000}]}])", "", ""},
		{"many host ports",
		 R"("containers":[{"ports":[)" + repeat(R"({"hostPort":1})", 1025) + "]}]", "", ""},
		{"many containers", R"("containers":[)" + repeat("{}", 513) + "]", "", ""},
		{"many statuses", "", R"("containerStatuses":[)" + repeat("{}", 513) + "]", ""},
		{"request", R"("containers":[{"resources":{"requests":{"cpu":"-1"}}}])", "", ""},
	};
	for (const Row &row : rows) {
		INFO(row.what);
		CHECK(pod(row.spec, row.status, row.meta).problem != "");
	}
	CHECK(pod(affinity(repeat(term, 256))).problem == "");
	CHECK(pod("", "", R"(,"labels":{"a":")" + std::string(63, 'x') + "\"}").problem == "");
}

TEST_CASE("gang markers of every kind are seen")
{
	for (const char *meta : {R"(,"labels":{"scheduling.x-k8s.io/pod-group":"g"})",
				 R"(,"annotations":{"scheduling.k8s.io/group-name":"g"})",
				 R"(,"labels":{"leaderworkerset.sigs.k8s.io/name":"g"})",
				 R"(,"labels":{"jobset.sigs.k8s.io/jobset-name":"g"})"}) {
		INFO(meta);
		CHECK(pod("", "", meta).in_pod_group);
	}
	CHECK(pod(R"("workloadRef":{"name":"w"})").in_pod_group);
	CHECK_FALSE(pod("", "", R"(,"labels":{"batch.kubernetes.io/job-name":"j"})").in_pod_group);
}

TEST_CASE("on the host network every container port is a host port")
{
	Pod p = pod(R"("hostNetwork":true,"containers":[{"ports":[{"containerPort":8080}]}])");
	REQUIRE(p.host_ports.size() == 1);
	CHECK(p.host_ports[0].port == 8080);
}

TEST_CASE("a zero byte in an annotation does not hide a pod")
{
	Pod p = pod("", "", R"(,"annotations":{"a":"x\u0000y"})");
	CHECK(p.meta.annotations.at("a") == std::string("x\0y", 3));
}

TEST_CASE("long messages are cut visibly and between two characters")
{
	std::string message;
	for (int i = 0; i < 600; i++)
		message += "\xc3\xa9";
	Pod p = pod("", R"("message":")" + message + "\"");
	CHECK(p.message.size() <= 1024);
	CHECK(p.message.substr(p.message.size() - 5) == "\xc3\xa9...");
}

TEST_CASE("a container that restarted has been started, whatever its state says now")
{
	Pod p = pod("", R"("containerStatuses":[{"name":"a","restartCount":1,"state":{"waiting":{}}},
		{"name":"b","lastState":{"terminated":{"exitCode":1}}},{"name":"c"}])");
	REQUIRE(p.containers.size() == 3);
	CHECK(p.containers[0].started_ever);
	CHECK(p.containers[1].started_ever);
	CHECK_FALSE(p.containers[2].started_ever);
}

TEST_CASE("members of the wrong type read as absent and crash nothing")
{
	const std::string members[] = {"schedulerName", "nodeName", "containers", "volumes", "affinity",
				       "tolerations", "nodeSelector", "priority", "resources",
				       "topologySpreadConstraints", "overhead", "initContainers"};
	for (const std::string &m : members)
		for (const char *value : {"null", "1", "\"x\"", "[1,null,[]]", R"({"a":[1],"b":{}})"}) {
			INFO(m << " = " << value);
			Pod p = pod("\"" + m + "\":" + value, "\"" + m + "\":" + value);
			CHECK(p.meta.uid == "u-1");
		}
}

TEST_CASE("a container's id leads to no other cgroup than its own")
{
	const struct {
		const char *given, *id;
	} rows[] = {{"containerd://0a_b-C", "0a_b-C"}, {"0a", "0a"}, {"", ""}, {"containerd://../x", ""}, {"containerd://a/b", ""},
		    {"containerd://a b", ""}, {"containerd://", ""}};
	for (const auto &row : rows) {
		INFO(row.given);
		const auto pod = decode(std::string(R"({"kind":"Pod","metadata":{"name":"a","namespace":"b","uid":"c"},"spec":{},
			"status":{"containerStatuses":[{"name":"a","containerID":")") + row.given + "\"}]}}");
		REQUIRE(pod);
		REQUIRE((*pod)->containers.size() == 1);
		CHECK((*pod)->containers[0].id == row.id);
	}
}

TEST_CASE("of more containers than are kept one in each state is, so that what runs is known to run")
{
	const std::string ended = R"({"name":"c","containerID":"x://1","state":{"terminated":{"exitCode":0}}})";
	const std::string waits = R"({"name":"w","state":{"waiting":{}}})";
	const auto statuses = [](const std::string &each, const std::string &last) {
		std::string list = "[";
		for (std::size_t i = 0; i < max_containers; i++)
			list += each + ",";
		return pod("", R"("startTime":"2026-08-01T10:00:00Z","containerStatuses":)" + list + last + "]");
	};
	const Pod runs = statuses(ended, R"({"name":"r","state":{"running":{}}})");
	CHECK(runs.problem.find("more than 512") != std::string::npos);
	REQUIRE(runs.containers.size() == 2);
	CHECK(runs.containers[0].state == ContainerStatus::State::terminated);
	CHECK(runs.containers[1].state == ContainerStatus::State::running);
	CHECK(statuses(ended, ended).containers.size() == 1);
	const Pod starts_again = statuses(waits, R"({"name":"w","containerID":"x://2","state":{"waiting":{}}})");
	REQUIRE(starts_again.containers.size() == 2);
	CHECK_FALSE(starts_again.containers[0].started_ever);
	CHECK(starts_again.containers[1].started_ever);
}
