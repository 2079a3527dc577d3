// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/job_container.h"

#include "lib/core/reservation.h"
#include "test/unit/catch.h"
#include "test/unit/core/reservation_world.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;

TEST_CASE("job container: the name of an image is one, or the reason says how one looks")
{
	for (const char *good : {"busybox", "busybox:1.36", "registry.example.com:5000/team/app@sha256:0123", "a/b_c/d-e.f:g"}) {
		INFO(good);
		CHECK(bad_image(good).empty());
	}
	for (const char *bad : {"", "-v", "/etc", "a b", "a\nb", "a\"b", "$(id)", "a;b", "a'b", "\xff"}) {
		INFO(bad);
		CHECK_FALSE(bad_image(bad).empty());
	}
	CHECK(bad_image(std::string(512, 'a')).empty());
	CHECK(bad_image(std::string(513, 'a')) == "is longer than 512 characters");
}

TEST_CASE("job container: the pod requests what the job has there, and runs as its user without any right")
{
	NativeJob job;
	job.ref = {7, 1000};
	job.user_id = 1001;
	job.group_id = 100;
	job.image = "registry.example.com/app:1";
	ReservationSettings settings;
	settings.pause_path = "/opt/pause";
	const Json spec = reservation_object(job, {"n1", 3, 200, {}}, "alice", settings)["spec"];
	REQUIRE(spec["containers"].size() == 1);
	const Json c = spec["containers"].at(0);
	CHECK(c["name"].str() == "job");
	CHECK(c["image"].str() == "registry.example.com/app:1");
	CHECK(c["command"].dump() == R"(["/.slurm-k8s/pause"])");
	CHECK(c["workingDir"].str() == "/"); // a runtime makes the image's, wherever it is, as root
	CHECK(c["resources"].dump() == R"({"requests":{"cpu":"3","memory":"200Mi"}})");
	CHECK(c["securityContext"].dump() == R"({"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}})");
	CHECK(spec["securityContext"]["runAsUser"].integer_or(-1) == 1001);
	CHECK_FALSE(spec["hostPID"].boolean_or(false)); // what groups an image gives its processes reaches no other process' files
	CHECK(spec["shareProcessNamespace"].boolean_or(false));
	CHECK(spec["securityContext"]["runAsGroup"].integer_or(-1) == 100);
	CHECK(spec["volumes"].dump() == R"([{"name":"slurm-k8s","hostPath":{"path":"/opt/pause","type":"File"}}])");
	CHECK(c["volumeMounts"].dump() == R"([{"name":"slurm-k8s","mountPath":"/.slurm-k8s/pause","readOnly":true}])");
	CHECK(spec["automountServiceAccountToken"].dump() == "false");
	CHECK(spec["nodeName"].str() == "n1");
}

TEST_CASE("job container: its pod has the groups of the job's user, and none of the image's where the node can do that")
{
	NativeJob job;
	job.ref = {7, 1000};
	job.group_id = 100;
	job.image = "app";
	const auto context = [&](const JobGroups &groups) {
		return reservation_object(job, {"n1", 3, 200, {}}, "alice", {}, {}, nullptr, groups)["spec"]["securityContext"];
	};
	CHECK(context({})["supplementalGroups"].is_null());
	CHECK(context({})["supplementalGroupsPolicy"].is_null());
	CHECK(context({.ids = {20, 4'000'000'000}, .strict = false})["supplementalGroups"].dump() == "[20,4000000000]");
	CHECK(context({.ids = {}, .strict = true})["supplementalGroupsPolicy"].str() == "Strict");
}

TEST_CASE("job container: the groups of a user are asked for where he has a container, and the node says what it can")
{
	for (const bool strict : {false, true}) {
		ReservationWorld w([](ClusterSettings &) {});
		w.groups = {20, 30};
		w.set_strict_groups("n1", strict);
		auto j = std::make_shared<NativeJob>(*w.job(7, 2));
		j->image = "app";
		w.controller->arrived(j);
		w.run();
		const Json context = w.objects.at("slurm-7-3ef-n1")["spec"]["securityContext"];
		CHECK(context["supplementalGroups"].dump() == "[20,30]");
		CHECK(context["supplementalGroupsPolicy"].is_null() == !strict);
	}
}

using State = kube::ContainerStatus::State;

static kube::ContainerStatus container(State state, const std::string &reason = "", const std::string &message = "")
{
	kube::ContainerStatus c;
	c.name = "job";
	c.state = state;
	c.reason = reason;
	c.message = message;
	return c;
}

TEST_CASE("job container: a kubelet's reasons end the wait, or do not")
{
	const struct {
		State state;
		const char *reason, *message, *trouble;
	} rows[] = {
		{State::waiting, "", "", ""},
		{State::waiting, "ContainerCreating", "", ""},
		{State::waiting, "ErrImagePull", "registry is away", ""},
		{State::waiting, "ImagePullBackOff", "no such image", "its container does not start: ImagePullBackOff: no such image"},
		{State::waiting, "InvalidImageName", "", "its container does not start: InvalidImageName"},
		{State::waiting, "CreateContainerConfigError", "x", "its container does not start: CreateContainerConfigError: x"},
		{State::terminated, "StartError", "exec format error", "its container does not start: StartError: exec format error"},
		{State::terminated, "", "", "its container does not start: it has ended"},
	};
	for (const auto &row : rows) {
		INFO(row.reason);
		const JobContainerState s = state_of_job_container({container(row.state, row.reason, row.message)});
		CHECK(s.trouble == row.trouble);
		CHECK_FALSE(s.runs);
	}
	CHECK(state_of_job_container({container(State::running)}).runs);
	kube::ContainerStatus other = container(State::running);
	other.name = "sidecar";
	CHECK_FALSE(state_of_job_container({other}).runs);
}

// ---- in the gate ----

namespace {

struct ContainerWorld : ReservationWorld {
	explicit ContainerWorld(const std::string &image = "app:1", bool requeues = true)
		: ReservationWorld([](ClusterSettings &s) {
			  s.nodes.sharing = GENERATE(Sharing::mixed, Sharing::dedicated);
			  s.reservations.shared.max_cpus = 4;
		  })
	{
		auto j = std::make_shared<NativeJob>(*job(7, 2, {"n1", "n2"}, requeues));
		j->image = image;
		controller->jobs_replaced({});
		controller->arrived(j);
		run();
	}
	void container_is(const std::string &node, const JobContainerState &state)
	{
		change_pod("slurm-7-3ef-" + node, [&](ForeignPod &p) { p.container = std::make_shared<JobContainerState>(state); });
		run();
	}
};

} // namespace

TEST_CASE("job container: the job is launched when its containers run on all of its nodes, and shares no pod")
{
	ContainerWorld w;
	REQUIRE(w.pods.size() == 2);
	CHECK(w.fate(7) == "waits");
	w.container_is("n1", {.runs = true});
	CHECK(w.fate(7) == "waits");
	w.container_is("n2", {.runs = true});
	CHECK(w.fate(7) == "launched");
}

TEST_CASE("job container: a job whose image cannot be had is cancelled, and its user reads why")
{
	ContainerWorld w("app:1", GENERATE(false, true));
	w.container_is("n1", {.runs = true});
	w.container_is("n2", {.trouble = "its container does not start: ImagePullBackOff: no such image"});
	REQUIRE(w.ended.size() == 1);
	CHECK(w.ended[0] == "7 cancel: image app:1 on node n2: its container does not start: ImagePullBackOff: no such image");
	w.run(Millis(5'000));
	CHECK(w.ended.size() == 1);
	CHECK(w.pods.empty());
}

TEST_CASE("job container: a job that Slurm does not cancel is not launched without its container either")
{
	ContainerWorld w;
	w.end_reply = {.ok = false, .text = "busy"};
	w.container_is("n1", {.trouble = "bad"});
	CHECK(w.fate(7) == "back after 0 s");
	w.run(Millis(5'000));
	CHECK(w.pods.empty());
}

TEST_CASE("job container: what is no image's name gets no pod")
{
	ContainerWorld w("$(reboot)");
	CHECK(w.pods.empty());
	REQUIRE(w.ended.size() == 1);
	CHECK(w.ended[0].starts_with("7 cancel: --k8s-image is no image's name"));
}

TEST_CASE("job container: an image that takes longer than gateTimeout has imageTimeout, if there is room")
{
	ContainerWorld w("app:1", false);
	w.run(w.settings.nodes.gate_timeout + Millis(1'000));
	CHECK(w.fate(7) == "waits");
	w.run(w.settings.reservations.image_timeout);
	CHECK(w.fate(7) == "back after 0 s");
	CHECK(w.answers.at(7).why.find("image app:1 on node n2: its container does not run yet") != std::string::npos);
}

// ---- where nodes are dedicated ----

namespace {

struct DedicatedWorld : ReservationWorld {
	explicit DedicatedWorld(const std::function<void(ClusterSettings &)> &configure = [](ClusterSettings &) {})
		: ReservationWorld([&](ClusterSettings &s) {
			  s.nodes.sharing = Sharing::dedicated;
			  s.nodes.groups = {{"pool=open", Sharing::none}};
			  configure(s);
		  })
	{
		controller->jobs_replaced({});
	}
	NativeJobPtr with_image(std::uint32_t id, const std::vector<std::string> &on = {"n1"}, const GresList &gres = {})
	{
		auto j = std::make_shared<NativeJob>(*job(id, 3, on));
		j->image = "app:1";
		for (NativeShare &s : j->shares)
			s.gres = gres;
		return j;
	}
	void container_runs()
	{
		change_pod(pod, [](ForeignPod &p) { p.container = std::make_shared<JobContainerState>(JobContainerState{.runs = true, .trouble = {}}); });
		run();
	}
	const std::string pod = "slurm-7-3ef-n1";
};

} // namespace

TEST_CASE("job container: on a dedicated node a job with a container has a pod that stands for it, and one without has none")
{
	DedicatedWorld w;
	w.label("n2", "pool", "open");
	w.controller->arrived(w.with_image(7, {"n1", "n2", "alone"}));
	w.controller->arrived(w.job(8, 3));
	w.run();
	CHECK(w.fate(8) == "launched");
	CHECK(w.fate(7) == "waits");
	REQUIRE(w.only_pod() == w.pod); // where nothing keeps kube-scheduler off there are none
	CHECK(w.pods.at(w.pod).milli_cpu == 3000);
	w.container_runs();
	CHECK(w.fate(7) == "launched");
	CHECK(w.controller->covers(w.pods.at(w.pod).meta.uid)); // its cores are not counted twice
	w.controller->ended({7, 1007});
	CHECK_FALSE(w.controller->covers(w.pods.at(w.pod).meta.uid));
	w.controller->left({7, 1007}, {});
	w.run();
	CHECK(w.pods.empty());
}

TEST_CASE("job container: on a dedicated node its kubelet has the last word on whether there is room for a container")
{
	DedicatedWorld w;
	w.foreign("tolerates", "default", 6);
	w.controller->arrived(w.with_image(7));
	w.run(Millis(1'000));
	CHECK(w.fate(7) == "back after 0 s");
	CHECK(w.answers.at(7).why.find("OutOfcpu") != std::string::npos);
}

TEST_CASE("job container: on a dedicated node one pod has a container and the devices of its job, whether or not others hold devices")
{
	DedicatedWorld w([](ClusterSettings &s) {
		s.resources = {{"example.com/card", "gpu", ""}};
		s.reservations.devices = GENERATE(true, false);
	});
	w.allocatable = {{"example.com/card", 4}};
	w.list();
	w.controller->arrived(w.with_image(7, {"n1"}, {{"gpu", "", 2, {0, 1}}}));
	w.run();
	w.container_runs();
	CHECK(w.fate(7) == "launched");
	CHECK(w.only_pod() == w.pod);
	CHECK(w.pods.at(w.pod).extended == std::map<std::string, std::int64_t>{{"example.com/card", 2}});
	CHECK(w.pods.at(w.pod).milli_cpu == 3000);
	CHECK(w.objects.at(w.pod)["spec"]["containers"].at(0)["name"].str() == "job");
}

TEST_CASE("job container: a pod of a dedicated node is known again after a restart, and goes if its job has ended meanwhile")
{
	DedicatedWorld w;
	const auto job = w.with_image(7);
	w.controller->arrived(job);
	w.run();
	w.container_runs();
	const std::string uid = w.pods.at(w.pod).meta.uid;
	const bool goes_on = GENERATE(true, false);
	w.restart();
	w.run(Millis(1'000));
	CHECK(w.only_pod() == w.pod); // which jobs run is not known yet
	w.controller->jobs_replaced(goes_on ? std::vector{job} : std::vector<NativeJobPtr>{});
	w.run(Millis(1'000));
	CHECK(w.watched == (goes_on ? std::vector<JobRef>{} : std::vector{job->ref})); // Slurm says who uses the node
	for (const JobRef &ref : w.watched)
		w.controller->left(ref, {});
	w.run(Millis(20'000));
	CHECK(w.pods.contains(w.pod) == goes_on);
	CHECK(w.controller->covers(uid) == goes_on);
	CHECK(w.created == 1);
}

TEST_CASE("job container: a container on a node that is not dedicated any more stays until its job has left it")
{
	DedicatedWorld w;
	const auto job = w.with_image(7);
	w.controller->arrived(job);
	w.run();
	w.container_runs();
	w.label("n1", "pool", "open");
	if (GENERATE(false, true)) {
		w.restart();
		w.controller->jobs_replaced({job});
	}
	w.run(Millis(20'000));
	CHECK(w.only_pod() == w.pod);
	w.controller->ended(job->ref);
	w.controller->left(job->ref, {});
	w.run(Millis(5'000));
	CHECK(w.pods.empty());
}

TEST_CASE("job container: a cluster on whose nodes no container of the job is to be says nothing about its template")
{
	DedicatedWorld w;
	w.label("n2", "pool", "open");
	auto elsewhere = std::make_shared<NativeJob>(*w.job(7, 3, {"n2", "alone"}));
	elsewhere->pod_template = "what another cluster allows";
	w.controller->arrived(elsewhere);
	w.run();
	CHECK(w.fate(7) == "launched");
	CHECK(w.ended.empty());
	auto here = std::make_shared<NativeJob>(*w.job(8, 3, {"n1", "alone"}));
	here->pod_template = elsewhere->pod_template;
	w.controller->arrived(here);
	w.run();
	REQUIRE(w.ended.size() == 1);
	CHECK(w.ended[0].starts_with("8 cancel: --k8s-template: is not allowed here"));
}

TEST_CASE("job container: without Kubernetes only those wait for dedicated nodes that want containers")
{
	DedicatedWorld w;
	w.restart(false);
	w.controller->arrived(w.with_image(7));
	w.controller->arrived(w.job(8, 3));
	CHECK(w.fate(7) == "waits");
	CHECK(w.fate(8) == "launched");
	w.list();
	w.run();
	w.container_runs();
	CHECK(w.fate(7) == "launched");
}

// ---- names ----

TEST_CASE("job container: a pod's name says whose it is")
{
	const JobRef job{4294967295U, 1'800'000'000};
	const auto found = job_of_reservation(reservation_name(job, "n-1"), "n-1");
	REQUIRE(found);
	CHECK(found->id == job.id);
	CHECK(found->submit_time == job.submit_time);
	for (const char *other : {"slurm-7-3ef-n2", "slurm-07-3ef-n1", "slurm-7-03ef-n1", "slurm-7-3EF-n1", "slurm-4294967296-1-n1", "slurm-7-fffffffffffffffff-n1", "x"}) {
		INFO(other);
		CHECK_FALSE(job_of_reservation(other, "n1"));
	}
}

// ---- with a template ----

namespace {

struct TemplateWorld : ReservationWorld {
	explicit TemplateWorld(const std::string &text, bool allow = true)
		: ReservationWorld([allow](ClusterSettings &s) {
			  s.nodes.sharing = GENERATE(Sharing::mixed, Sharing::dedicated);
			  s.reservations.templates.allow = allow;
		  })
	{
		auto j = std::make_shared<NativeJob>(*job(7, 2, {"n1", "n2"}, true));
		j->pod_template = text;
		controller->arrived(j);
		run();
	}
};

const std::string good = "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: job, image: app}]}\n";

} // namespace

TEST_CASE("job container: a template that is refused gets no pod, and its job is cancelled")
{
	const TemplateWorld not_allowed(good, false);
	REQUIRE(not_allowed.ended.size() == 1);
	CHECK(not_allowed.ended[0].starts_with("7 cancel: --k8s-template: is not allowed here"));
	CHECK(not_allowed.created == 0);
	const TemplateWorld no_image("apiVersion: v1\nkind: Pod\n");
	CHECK(no_image.created == 0);
	const TemplateWorld too_much(
		"apiVersion: v1\nkind: Pod\nspec: {containers: [{name: job, image: a}, {name: b, image: b, resources: {limits: {memory: 1Ti}}}]}\n");
	CHECK(too_much.created == 0);
	CHECK(too_much.ended.size() == 1);
}

TEST_CASE("job container: a volume that is not there ends the job, one that takes long does not")
{
	TemplateWorld w(good);
	w.mount_troubles["slurm-7-3ef-n1"] = "Unable to attach or mount volumes: timed out";
	w.run(Millis(25'000));
	CHECK(w.ended.empty());
	w.mount_troubles["slurm-7-3ef-n1"] = "MountVolume.SetUp failed for volume \"v\" : configmap \"x\" not found";
	w.run(Millis(5'000));
	REQUIRE(w.ended.size() == 1);
	CHECK(w.ended[0] == "7 cancel: --k8s-template: on node n1 a volume cannot be mounted: MountVolume.SetUp failed for volume \"v\" : "
			    "configmap \"x\" not found");
}

TEST_CASE("job container: a claim that only kube-scheduler could have bound ends the job, one that may be bound yet does not")
{
	static const std::string of_kubelet = "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to "
					      "process volumes=[data]: error processing PVC jobs/data-a: PVC is not bound";
	CHECK(unbound_claim("jobs", of_kubelet) == "data-a");
	CHECK(unbound_claim("other", of_kubelet).empty());
	CHECK(unbound_claim("jobs", "error processing PVC jobs/data-a: failed to fetch PVC").empty());
	TemplateWorld w(good);
	w.mount_troubles["slurm-7-3ef-n1"] = of_kubelet;
	w.run(Millis(25'000));
	CHECK(w.ended.empty());
	w.mount_troubles["slurm-7-3ef-n1"] = "persistentvolumeclaim data-a is not bound and its class is (WaitForFirstConsumer)";
	w.run(Millis(5'000));
	REQUIRE(w.ended.size() == 1);
	CHECK(w.ended[0].starts_with("7 cancel: --k8s-template: on node n1 a volume cannot be mounted: persistentvolumeclaim data-a is not bound"));
}

// ---- while NSS does not answer ----

TEST_CASE("job container: while its user's name is not known a job waits in the queue, and is not told that it may not")
{
	ReservationWorld w([](ClusterSettings &s) {
		s.reservations.templates = {.allow = true, .config_maps = {"{user}"}};
		s.reservations.service_accounts = {"{user}"};
	});
	const bool has_account = GENERATE(true, false);
	CAPTURE(has_account);
	auto j = std::make_shared<NativeJob>(*w.job(7, 2));
	j->user_id = 1001;
	j->image = "app:1";
	j->service_account = has_account ? "alice" : "";
	j->pod_template = has_account ? "" : "apiVersion: v1\nkind: Pod\nspec: {volumes: [{name: v, configMap: {name: alice}}]}\n";
	w.controller->jobs_replaced({});
	w.user.reset();
	w.controller->arrived(j);
	w.run(Millis(1'000));
	CHECK(w.ended.empty());
	CHECK(w.created == 0);
	REQUIRE(w.answers.contains(7));
	CHECK(w.fate(7) == "back after 0 s");
	CHECK(w.answers.at(7).why.find("the name of user 1001 is not known on the controller") != std::string::npos);

	w.user = "alice";
	w.answers.clear();
	w.controller->arrived(j);
	w.run(Millis(1'000));
	CHECK(w.ended.empty());
	CHECK(w.created == 1);
	w.change_pod("slurm-7-3ef-n1", [](ForeignPod &p) { p.container = std::make_shared<JobContainerState>(JobContainerState{.runs = true}); });
	w.run();
	CHECK(w.fate(7) == "launched");
}

TEST_CASE("job container: a pod that is made again while its user's name is not known waits until it may have what it had")
{
	ReservationWorld w([](ClusterSettings &s) { s.reservations.service_accounts = {"{user}"}; });
	auto j = std::make_shared<NativeJob>(*w.job(7, 2));
	j->user_id = 1001;
	j->image = "app:1";
	j->service_account = "alice";
	w.user.reset();
	w.controller->jobs_replaced({j});
	w.run(Millis(1'000));
	CHECK(w.created == 0);
	w.user = "alice";
	w.run(Millis(30'000));
	REQUIRE(w.created == 1);
	CHECK(w.objects.at("slurm-7-3ef-n1")["spec"]["serviceAccountName"].str() == "alice");
}

// ---- somebody takes the pod ----

TEST_CASE("job container: a job whose container somebody takes does not go on without it, whatever the settings say of others")
{
	ContainerWorld w;
	w.container_is("n1", {.runs = true});
	w.container_is("n2", {.runs = true});
	REQUIRE(w.fate(7) == "launched");
	w.run(Millis(60'000)); // from now on we have not deleted it ourselves before
	w.end_pod("slurm-7-3ef-n1");
	w.run(Millis(5'000));
	REQUIRE(w.ended.size() == 1); // by default a job without a container goes on
	CHECK(w.ended[0] == "7 requeue: its reservation pod on node n1 was deleted");
}
