// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Pods of Slurm's own jobs whose containers claim devices: their claims get what the jobs have, before the Binding.
#include "lib/core/job_claims.h"

#include "lib/core/names.h"
#include "test/unit/catch.h"
#include "test/unit/core/reservation_world.h"
#include "test/unit/core/world.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;

namespace {

using Indices = std::vector<std::uint16_t>;

// Claims are World's, in the namespace of which its pods are; pods are ReservationWorld's.
class ClaimWorld : public ReservationWorld {
public:
	ClaimWorld() : ReservationWorld([](ClusterSettings &s) {
		s.nodes.sharing = Sharing::dedicated;
		s.reservations.ns = "team-a";
		s.reservations.templates.allow = true;
		s.reservations.templates.resource_claims = {"*"};
		s.reservations.devices = false;
	})
	{
		drivers.start_with_drivers();
		settings.resources = drivers.settings.resources;
		dra = drivers.dra.get();
		binder = &port_;
		restart();
		controller->jobs_replaced({});
	}
	void go(Millis time = Millis(0))
	{
		do {
			for (int rounds = 0; rounds < 10; rounds++) {
				drivers.run();
				controller->claims_changed();
				run();
			}
			const Millis some = std::min(time, Millis(100));
			time -= some;
			run(some);
		} while (time > Millis(0));
	}
	NativeJobPtr with_claims(const Indices &devices, const std::string &claims = claim_c, const std::vector<std::string> &on = {"n1"})
	{
		auto j = std::make_shared<NativeJob>(*job(7, 2, on, true));
		j->pod_template = "apiVersion: v1\nkind: Pod\nspec:\n  resourceClaims: " + claims +
				  "\n  containers: [{name: job, image: app, resources: {claims: [{name: gpus}]}}]\n";
		for (NativeShare &s : j->shares)
			s.gres = {{"gpu", "", devices.size(), devices}};
		return j;
	}
	std::string devices_of(const std::string &name)
	{
		std::string out;
		for (const auto &d : drivers.claim(name).devices)
			out += (out.empty() ? "" : ",") + d.pool + "/" + d.device;
		return out;
	}
	// kube-controller-manager makes the claim of a template.
	void makes_claim(const std::string &of_pod, const std::string &claim, int count)
	{
		drivers.create_claim(claim, count);
		change_pod(of_pod, [&](ForeignPod &p) { p.resource_claims.at(0).claim = claim; });
	}
	std::string node_of(const std::string &name) { return pods.contains(name) ? pods.at(name).node_name : "gone"; }
	void runs(const std::string &name)
	{
		change_pod(name, [](ForeignPod &p) { p.container = std::make_shared<JobContainerState>(JobContainerState{.runs = true, .trouble = ""}); });
		go();
	}

	static constexpr auto claim_c = "[{name: gpus, resourceClaimName: c}]";
	static constexpr auto of_template = "[{name: gpus, resourceClaimTemplateName: t}]";
	World drivers;
	std::vector<int> bind_replies; // the next ones: status; 0: done, but nobody hears of it
	int binds = 0;
	const std::string pod = "slurm-7-3ef-n1";

private:
	struct Port : KubePort {
		explicit Port(ClaimWorld &world) : w(world) {}
		void patch_claim(const kube::ResourceClaim &claim, bool status, const Json &patch, Done done) override
		{
			static_cast<KubePort &>(w.drivers).patch_claim(claim, status, patch, std::move(done));
		}
		void bind(const PodKey &key, const std::string &node, const std::map<std::string, std::string> &, Done done) override
		{
			w.binds++;
			KubeReply r;
			const int fault = w.bind_replies.empty() ? 201 : w.bind_replies.front();
			if (!w.bind_replies.empty())
				w.bind_replies.erase(w.bind_replies.begin());
			r.status = fault > 201 ? fault : w.bind_pod(key, node);
			if (fault == 0)
				r.status = 0;
			r.error = r.ok() ? "" : "refused";
			w.news([done = std::move(done), r] { done(r); });
		}
		void get_pod(const PodKey &key, Done done) override
		{
			KubeReply r{.status = 404, .error = "not found", .retry_after = {}, .pod = {}, .claim = {}};
			if (w.pods.contains(key.name)) {
				auto p = std::make_shared<kube::Pod>();
				p->meta = w.pods.at(key.name).meta;
				p->node_name = w.pods.at(key.name).node_name;
				r = {.status = 200, .error = "", .retry_after = {}, .pod = p, .claim = {}};
			}
			w.news([done = std::move(done), r] { done(r); });
		}
		void set_finalizer(const PodKey &, bool, Done) override { FAIL("nobody asked for that"); }
		void annotate_pod(const PodKey &, const AnnotationChanges &, Done) override { FAIL("nobody asked for that"); }
		void delete_pod(const PodKey &, const Deletion &, Done) override { FAIL("nobody asked for that"); }
		void set_condition(const PodKey &, const std::string &, const PodCondition &, Done) override { FAIL("nobody asked for that"); }
		void get_manifest(const PodKey &, Manifest) override { FAIL("nobody asked for that"); }
		void create_pod(const std::string &, const Json &, Done) override { FAIL("nobody asked for that"); }
		void create_event(const PodKey &, const PodEvent &, Done) override { FAIL("nobody asked for that"); }
		void get_volumes(const PodKey &, const std::vector<std::string> &, std::function<void(const Volumes &)>) override
		{
			FAIL("nobody asked for that");
		}
		ClaimWorld &w;
	};
	Port port_{*this};
};

} // namespace

TEST_CASE("job claims: a job's claim gets just its devices, and then its pod is bound and the job is launched")
{
	ClaimWorld w;
	w.drivers.create_claim("c", 2);
	w.controller->arrived(w.with_claims({1, 3}));
	w.go();
	const Json spec = w.objects.at(w.pod)["spec"];
	CHECK(spec["nodeName"].is_null());
	CHECK(spec["schedulerName"].str() == names::reservation_scheduler);
	CHECK(spec["resourceClaims"].dump() == R"([{"name":"gpus","resourceClaimName":"c"}])");
	CHECK(spec["containers"].at(0)["resources"].dump() == R"({"requests":{"cpu":"2","memory":"100Mi"},"claims":[{"name":"gpus"}]})");
	CHECK(w.devices_of("c") == "n1/gpu-1,n1/gpu-3");
	CHECK(w.drivers.claim("c").reserved_for == std::vector{w.pods.at(w.pod).meta.uid});
	CHECK(is_protected(w.drivers.claim("c")));
	CHECK(w.node_of(w.pod) == "n1");
	CHECK(w.binds == 1);
	CHECK(w.placed == std::vector<std::string>{"n1 there"});
	CHECK(w.fate(7) == "waits");
	w.runs(w.pod);
	CHECK(w.fate(7) == "launched");
	CHECK(w.controller->covers(w.pods.at(w.pod).meta.uid));
}

TEST_CASE("job claims: on each node of a job a claim of its template has what the job has there")
{
	ClaimWorld w;
	auto both = std::make_shared<NativeJob>(*w.with_claims({0}, ClaimWorld::of_template, {"n1", "n2"}));
	both->shares.at(1).gres = {{"gpu", "", 1, {3}}};
	w.controller->arrived(both);
	w.go();
	CHECK(w.node_of(w.pod) == "");
	CHECK(w.binds == 0);
	w.makes_claim(w.pod, "t-1", 1);
	w.makes_claim("slurm-7-3ef-n2", "t-2", 1);
	w.go();
	CHECK(w.devices_of("t-1") == "n1/gpu-0");
	CHECK(w.devices_of("t-2") == "n2/gpu-3");
	CHECK(w.node_of(w.pod) == "n1");
	CHECK(w.node_of("slurm-7-3ef-n2") == "n2");
}

TEST_CASE("job claims: what the user wants and cannot have cancels his job with one sentence, and nothing is bound")
{
	ClaimWorld w;
	const auto says = [&](const NativeJobPtr &job) {
		w.controller->arrived(job);
		w.go(Millis(12'000));
		CHECK(w.binds == 0);
		return w.ended.empty() ? "" : w.ended.back();
	};
	w.drivers.create_claim("c", 2);
	SECTION("another number than he has asked Slurm for")
	{
		CHECK(says(w.with_claims({1})) == "7 cancel: --k8s-template: its resource claims want 2 of Slurm's gpu, and the job has 1 on node n1: "
						  "ask for as many by --gres");
	}
	SECTION("more than one pod of a claim that there is once")
	{
		CHECK(says(w.with_claims({1, 2}, ClaimWorld::claim_c, {"n1", "n2"}))
			      .starts_with("7 cancel: --k8s-template: ResourceClaim c has devices of one node, and the job has 2: give a resourceClaimTemplateName"));
		CHECK(w.created == 0);
	}
	SECTION("a claim that is not there, and does not come")
	{
		CHECK(says(w.with_claims({1}, "[{name: gpus, resourceClaimName: d}]")) ==
		      "7 cancel: --k8s-template: resource claim d does not exist in namespace team-a");
	}
	SECTION("a claim that leaves a choice")
	{
		w.drivers.create_claim("all", 1, Json::object().set("allocationMode", "All"));
		CHECK(says(w.with_claims({1}, "[{name: gpus, resourceClaimName: all}]"))
			      .starts_with("7 cancel: --k8s-template: resource claim all, request gpus: it wants no exact number"));
	}
	SECTION("a template that is not there")
	{
		w.mount_troubles[w.pod] = "PodResourceClaim gpus: resource claim template \"t\": resourceclaimtemplate.resource.k8s.io \"t\" not found";
		CHECK(says(w.with_claims({1}, ClaimWorld::of_template))
			      .starts_with("7 cancel: --k8s-template: on node n1 a resource claim cannot be made: PodResourceClaim gpus: resource claim template"));
	}
	SECTION("claims where no deviceClass is Slurm's")
	{
		w.dra = nullptr;
		w.restart();
		CHECK(says(w.with_claims({1})) == "7 cancel: --k8s-template: it has resourceClaims, and clusters[].resources in slurm-k8s.yaml names no "
						  "deviceClass, so they are of none of Slurm's devices");
		CHECK(w.created == 0);
	}
	w.go(Millis(2'000));
	CHECK(w.pods.empty());
}

TEST_CASE("job claims: where a device plugin has the same devices a pod that claims them requests none of it")
{
	ClaimWorld w;
	ResourceSettings plugin;
	plugin.kubernetes = "example.com/card";
	plugin.gres = "gpu";
	w.settings.resources.push_back(plugin);
	w.allocatable["example.com/card"] = 4;
	w.restart();
	w.controller->jobs_replaced({});
	w.drivers.create_claim("c", 2);
	w.controller->arrived(w.with_claims({0, 1}));
	w.go();
	const Json requests = w.objects.at(w.pod)["spec"]["containers"].at(0)["resources"]["requests"];
	CHECK(requests["example.com/card"].is_null());
	w.tell_devices("n1", w.pod, "2,3");
	w.runs(w.pod);
	CHECK(w.given.empty());
	CHECK(w.devices_of("c") == "n1/gpu-0,n1/gpu-1");
	CHECK(w.fate(7) == "launched");
}

TEST_CASE("job claims: a pod whose claims have other devices than its job stands for no job, and they are not taken from it")
{
	ClaimWorld w;
	w.drivers.create_claim("c", 1);
	const bool lands = GENERATE(true, false); // the Binding of the start before, of which Slurm knows nothing
	w.bind_replies = {503};
	w.controller->arrived(w.with_claims({0}));
	w.go();
	REQUIRE(w.devices_of("c") == "n1/gpu-0");
	REQUIRE(w.node_of(w.pod) == "");
	const std::string uid = w.pods.at(w.pod).meta.uid;
	w.restart(false);
	w.controller->jobs_replaced({});
	w.controller->arrived(w.with_claims({2}));
	if (lands)
		w.bind_pod({"c", "team-a", w.pod, uid}, "n1");
	w.list();
	bool freed = false;
	w.drivers.at_claim_patch = [&] { freed = w.pods.contains(w.pod) && w.pods.at(w.pod).meta.uid == uid; };
	w.run();
	if (w.pods.contains(w.pod))
		w.change_pod(w.pod, [](ForeignPod &p) {
			p.container = std::make_shared<JobContainerState>(JobContainerState{.runs = !p.node_name.empty(), .trouble = ""});
		});
	w.go(Millis(3'000));
	CHECK(w.fate(7) == "back after 0 s");
	CHECK_FALSE(w.controller->covers(uid));
	CHECK_FALSE(freed);
	CHECK(w.devices_of("c") == "n1/gpu-0");
}

TEST_CASE("job claims: a job whose claims somebody has changed after the Binding is not launched")
{
	ClaimWorld w;
	w.drivers.create_claim("c", 1);
	w.controller->arrived(w.with_claims({1}));
	w.go();
	REQUIRE(w.node_of(w.pod) == "n1");
	const bool other = GENERATE(true, false); // else it has none
	w.drivers.claim_changes("c", *Json::parse(other ? R"({"status":{"allocation":{"devices":{"results":[
		{"request":"gpus","driver":"gpu.example.com","pool":"n1","device":"gpu-3"}]}}}})" : R"({"status":{"allocation":null}})"));
	w.go();
	if (!other)
		w.runs(w.pod);
	CHECK(w.fate(7) == (other ? "back after 0 s" : "waits"));
	w.go(Millis(21'000));
	CHECK(w.fate(7) != "launched");
}

TEST_CASE("job claims: of two jobs that name the same claims in another order one gets both")
{
	ClaimWorld w;
	w.drivers.create_claim("c", 1);
	w.drivers.create_claim("d", 1);
	const auto first = w.with_claims({0, 1}, "[{name: gpus, resourceClaimName: c}, {name: more, resourceClaimName: d}]");
	auto second = std::make_shared<NativeJob>(*w.with_claims({2, 3}, "[{name: gpus, resourceClaimName: d}, {name: more, resourceClaimName: c}]"));
	second->ref = {8, 1008};
	w.controller->arrived(first);
	w.controller->arrived(second);
	w.go(Millis(3'000));
	CHECK(w.binds == 1);
	for (const std::string name : {"c", "d"})
		w.drivers.claim_changes(name, *Json::parse(R"({"status":{"allocation":null,"reservedFor":null}})"));
	w.go(Millis(10'000));
	CHECK(w.binds == 2);
}

TEST_CASE("job claims: a pod that was made and deleted while the watch was down is made again")
{
	ClaimWorld w;
	w.drivers.create_claim("c", 1);
	w.watch_delivers = false;
	w.controller->arrived(w.with_claims({1}));
	w.go();
	REQUIRE(w.created == 1);
	w.pods.clear();
	w.watch_delivers = true;
	w.controller->unbound_replaced({});
	w.go(Millis(5'000));
	CHECK(w.created == 2);
	CHECK(w.node_of(w.pod) == "n1");
}

TEST_CASE("job claims: devices of a job that are masked get into no claim, and no job is launched with them")
{
	ClaimWorld w;
	w.drivers.create_claim("c", 1);
	const auto masked = [](const NativeShare &s) {
		const bool asked = s.cpus == 0 && s.gres == GresList{{"gpu", "", 1, {0}}};
		return asked ? std::optional(PodKey{"c", "x", "other", "uid-other"}) : std::nullopt;
	};
	w.taken_by = masked;
	w.controller->arrived(w.with_claims({0}));
	w.go(Millis(2'000));
	CHECK(w.binds == 0);
	CHECK_FALSE(w.drivers.claim("c").allocated);
	w.taken_by = [](const NativeShare &) { return std::nullopt; };
	w.go(Millis(8'000));
	REQUIRE(w.node_of(w.pod) == "n1");
	w.taken_by = masked;
	w.runs(w.pod);
	CHECK(w.fate(7) == "back after 0 s");
}

TEST_CASE("job claims: a pod to which a former engine may have sent a Binding counts as there until it is gone")
{
	ClaimWorld w;
	w.drivers.create_claim("c", 1);
	w.bind_replies = {503};
	w.controller->arrived(w.with_claims({0}));
	w.go();
	REQUIRE(w.node_of(w.pod) == "");
	const std::string uid = w.pods.at(w.pod).meta.uid;
	w.restart();
	w.placed.clear();
	w.controller->jobs_replaced({});
	w.delete_takes = Millis(5'000);
	w.go();
	CHECK(w.placed == std::vector<std::string>{"n1 there"});
	SECTION("it goes")
	{
		w.go(Millis(8'000));
		CHECK(w.pods.empty());
		CHECK(w.placed == std::vector<std::string>{"n1 there", "n1 perhaps"});
	}
	SECTION("the Binding lands")
	{
		w.bind_pod({"c", "team-a", w.pod, uid}, "n1");
		w.go(Millis(1'000));
		CHECK(w.placed == std::vector<std::string>{"n1 there"}); // the other watch tells of it
	}
	SECTION("those that have a node are listed again")
	{
		w.controller->replaced({});
		w.go();
		CHECK(w.placed == std::vector<std::string>{"n1 there", "n1 there"});
	}
}

TEST_CASE("job claims: before claims are listed no job that has devices is launched")
{
	ClaimWorld w;
	Dra unknown(w.settings.resources);
	w.dra = &unknown;
	w.restart();
	w.controller->jobs_replaced({});
	auto plain = std::make_shared<NativeJob>(*w.job(8, 2));
	plain->shares.at(0).gres = {{"gpu", "", 1, {0}}};
	w.controller->arrived(plain);
	w.run(Millis(1'000));
	CHECK(w.fate(8) == "waits");
	unknown.inventory.slices_replaced({});
	unknown.inventory.classes_replaced({});
	unknown.claims_replaced({});
	w.run();
	CHECK(w.fate(8) == "launched");
}

TEST_CASE("job claims: a claim that comes late is waited for")
{
	ClaimWorld w;
	w.controller->arrived(w.with_claims({1}));
	w.go(Millis(8'000));
	CHECK(w.node_of(w.pod) == "");
	w.drivers.create_claim("c", 1);
	w.go(Millis(5'000));
	CHECK(w.node_of(w.pod) == "n1");
	CHECK(w.ended.empty());
}

TEST_CASE("job claims: devices that another has are never written, and what waits for them is bound when they are free")
{
	ClaimWorld w;
	const bool same = GENERATE(true, false); // the job's own claim is another pod's, or another claim has its device
	w.drivers.create_claim("c", 1);
	w.drivers.create_claim("others", 1);
	const std::string taken = same ? "c" : "others";
	w.drivers.claim_changes(taken, *Json::parse(R"({"status":{"allocation":{"devices":{"results":[
		{"request":"gpus","driver":"gpu.example.com","pool":"n1","device":"gpu-1"}]}},"reservedFor":[{"resource":"pods","name":"x","uid":"x"}]}})"));
	w.controller->arrived(w.with_claims({1}));
	w.go(Millis(12'000));
	CHECK(w.binds == 0);
	CHECK(w.ended.empty());
	CHECK(w.devices_of(taken) == "n1/gpu-1");
	CHECK(w.drivers.claim(taken).reserved_for == std::vector<std::string>{"x"});
	w.drivers.claim_changes(taken, *Json::parse(R"({"status":{"allocation":null,"reservedFor":null}})"));
	w.go(Millis(2'000));
	CHECK(w.devices_of("c") == "n1/gpu-1");
	CHECK(w.node_of(w.pod) == "n1");
}

TEST_CASE("job claims: what a job before has left in a claim is taken away before this one's pod has a node")
{
	ClaimWorld w;
	w.drivers.create_claim("c", 1);
	w.drivers.claim_changes("c", *Json::parse(R"({"status":{"allocation":{"devices":{"results":[
		{"request":"gpus","driver":"gpu.example.com","pool":"n1","device":"gpu-0"}]}}}})"));
	w.controller->arrived(w.with_claims({2}));
	w.go();
	CHECK(w.devices_of("c") == "n1/gpu-2");
	CHECK(w.node_of(w.pod) == "n1");
}

TEST_CASE("job claims: a slurmctld that dies before the Binding finds the pod again, and writes nothing twice")
{
	ClaimWorld w;
	const int writes = GENERATE(0, 1, 2); // of its claim before that: none, the finalizer, its devices
	w.drivers.create_claim("c", 1);
	if (writes == 0)
		w.drivers.fail["claim"] = {500};
	if (writes == 1)
		w.drivers.at_claim_patch = [&] { w.drivers.fail["claim"] = {500}; };
	if (writes == 2)
		w.bind_replies = {503};
	w.controller->arrived(w.with_claims({1}));
	w.go();
	REQUIRE(w.node_of(w.pod) == "");
	CHECK(is_protected(w.drivers.claim("c")) == (writes > 0));
	CHECK(w.drivers.claim("c").allocated == (writes > 1));
	const auto version = w.drivers.claim("c").meta.resource_version;
	const std::string uid = w.pods.at(w.pod).meta.uid;
	w.restart();
	w.controller->jobs_replaced({w.with_claims({1})});
	w.controller->arrived(w.with_claims({1}));
	w.go(Millis(2'000));
	CHECK(w.pods.at(w.pod).meta.uid == uid);
	CHECK(w.node_of(w.pod) == "n1");
	CHECK(w.devices_of("c") == "n1/gpu-1");
	CHECK((w.drivers.claim("c").meta.resource_version == version) == (writes == 2));
	CHECK(w.created == 1);
}

TEST_CASE("job claims: a Binding of which nobody has heard is looked for, and is not sent to a pod that has a node")
{
	ClaimWorld w;
	w.drivers.create_claim("c", 1);
	const bool watch = GENERATE(true, false);
	w.bind_replies = {0};
	w.controller->arrived(w.with_claims({1}));
	w.watch_delivers = true;
	w.run();
	w.watch_delivers = watch;
	w.go(Millis(2'000));
	w.watch_catches_up();
	w.go(Millis(2'000));
	CHECK(w.node_of(w.pod) == "n1");
	CHECK(w.binds == 1);
	w.runs(w.pod);
	CHECK(w.fate(7) == "launched");
}

TEST_CASE("job claims: a pod that somebody has bound to another node stands for no job there, and is made anew")
{
	ClaimWorld w;
	const bool requeues = GENERATE(true, false), watch = GENERATE(true, false), restart = GENERATE(true, false);
	CAPTURE(requeues, watch, restart);
	auto job = std::make_shared<NativeJob>(*w.with_claims({1}));
	job->requeues = requeues;
	w.controller->arrived(job);
	w.go();
	REQUIRE(w.node_of(w.pod) == "");
	const std::string uid = w.pods.at(w.pod).meta.uid;
	if (restart) {
		w.restart();
		w.controller->jobs_replaced({});
		w.controller->arrived(job);
		w.go();
	}
	const auto before = std::make_shared<ForeignPod>(w.pods.at(w.pod));
	w.watch_delivers = watch;
	w.bind_pod({"c", "team-a", w.pod, uid}, "n2");
	w.drivers.create_claim("c", 1);
	if (!watch)
		w.controller->unbound_removed(before); // and the other watch tells later
	w.run();
	CHECK_FALSE(w.controller->covers(uid));
	w.watch_catches_up();
	w.run();
	CHECK_FALSE(w.controller->covers(uid));
	if (requeues) {
		CHECK(w.fate(7) == "back after 0 s");
		CHECK(w.answers.at(7).why == "somebody has bound the job's reservation pod for node n1 to node n2");
		return;
	}
	w.go(Millis(5'000));
	CHECK(w.created == 2);
	CHECK(w.node_of(w.pod) == "n1");
	w.runs(w.pod);
	CHECK(w.fate(7) == "launched");
}

TEST_CASE("job claims: another pod that takes the name of one while its claims are written is not taken for it")
{
	ClaimWorld w;
	w.drivers.create_claim("c", 1);
	w.drivers.at_claim_patch = [&] {
		auto stranger = std::make_shared<ForeignPod>(w.pods.at(w.pod));
		stranger->meta.uid = "uid-stranger";
		stranger->node_name = "n1";
		stranger->admitted = true;
		w.controller->changed(stranger);
	};
	w.controller->arrived(w.with_claims({1}));
	w.go();
	CHECK_FALSE(w.controller->covers("uid-stranger"));
	CHECK(w.node_of(w.pod) == "n1");
	CHECK(w.binds == 1);
}

TEST_CASE("job claims: a pod that was refused its node is not counted there, and tried again")
{
	ClaimWorld w;
	w.drivers.create_claim("c", 1);
	w.bind_replies = {403};
	w.controller->arrived(w.with_claims({1}));
	w.go();
	CHECK(w.placed == std::vector<std::string>{"n1 there", "n1 never"});
	w.go(Millis(5'000));
	CHECK(w.placed == std::vector<std::string>{"n1 there", "n1 never", "n1 there"});
	CHECK(w.node_of(w.pod) == "n1");
}

TEST_CASE("job claims: a pod whose job ends before it has a node goes at once, and one that stands for none when slurmctld is back")
{
	ClaimWorld w;
	w.controller->arrived(w.with_claims({1}));
	w.go();
	REQUIRE(w.node_of(w.pod) == "");
	SECTION("it ends")
	{
		w.controller->ended({7, 1007});
		w.go(Millis(1'000));
		CHECK(w.pods.empty());
	}
	SECTION("it has ended meanwhile")
	{
		w.restart();
		w.go();
		CHECK(w.pods.size() == 1); // which jobs there are is not known
		w.controller->jobs_replaced({});
		w.go(Millis(1'000));
		CHECK(w.pods.empty());
	}
	SECTION("somebody deletes the pod")
	{
		w.end_pod(w.pod);
		w.drivers.create_claim("c", 1);
		w.go(Millis(5'000));
		CHECK(w.node_of(w.pod) == "n1"); // another one
		CHECK(w.created == 2);
	}
}

TEST_CASE("job claims: a job that ends while its pod is bound leaves a pod that counts as there until it is gone")
{
	ClaimWorld w;
	w.drivers.create_claim("c", 1);
	w.bind_replies = {0};
	w.controller->arrived(w.with_claims({1}));
	w.watch_delivers = false;
	w.drivers.run();
	w.run();
	for (int i = 0; i < 20 && w.binds == 0; i++) {
		w.watch_catches_up();
		w.drivers.run();
		w.controller->claims_changed();
		w.run();
	}
	REQUIRE(w.binds == 1);
	const std::string uid = w.pods.at(w.pod).meta.uid;
	w.controller->ended({7, 1007});
	CHECK_FALSE(w.controller->covers(uid));
	CHECK(w.placed.back() == "n1 there");
	w.watch_catches_up();
	w.go(Millis(2'000));
	CHECK(w.pods.empty());
}

TEST_CASE("job claims: a kubelet that could not read the claim yet is made to look again, and less and less often")
{
	ClaimWorld w;
	w.drivers.create_claim("c", 1);
	w.controller->arrived(w.with_claims({1}));
	w.go(Millis(1'000));
	REQUIRE(w.node_of(w.pod) == "n1");
	CHECK(w.touched.empty());
	w.go(Millis(6'000));
	CHECK(w.touched == std::vector{w.pod + " 1", w.pod + " 2"});
	w.runs(w.pod);
	w.go(Millis(30'000));
	CHECK(w.touched.size() == 2);
}

TEST_CASE("job claims: neither what one watch tells late nor a list of the other makes a pod another")
{
	ClaimWorld w;
	SECTION("it has a node, and the watch of those that have none is late")
	{
		w.drivers.create_claim("c", 1);
		w.controller->arrived(w.with_claims({1}));
		w.go();
		REQUIRE(w.node_of(w.pod) == "n1");
		auto before = std::make_shared<ForeignPod>(w.pods.at(w.pod));
		before->node_name.clear();
		before->admitted = false;
		w.controller->unbound_changed(before);
		w.go(Millis(1'000));
		CHECK(w.binds == 1);
		w.runs(w.pod);
		CHECK(w.fate(7) == "launched");
	}
	SECTION("it has none, and all that have one are listed again")
	{
		w.controller->arrived(w.with_claims({1}));
		w.go();
		w.controller->replaced({});
		w.drivers.create_claim("c", 1);
		w.go();
		CHECK(w.node_of(w.pod) == "n1");
		CHECK(w.created == 1);
	}
}

TEST_CASE("job claims: what a pod needs next, by what is known of it")
{
	using Step = ReservationStep;
	const struct {
		ReservationFacts facts;
		Step is;
	} rows[] = {
		{{.wanted = true, .exists = true, .unbound = true}, Step::place},
		{{.wanted = true, .exists = true, .busy = true, .unbound = true}, Step::none},
		{{.wanted = true, .exists = true, .deleting = true, .unbound = true}, Step::none},
		{{.wanted = true, .exists = true, .over = true, .unbound = true}, Step::remove},
		{{.exists = true, .unbound = true}, Step::remove},
		{{.exists = true, .unbound = true, .doubtful = true}, Step::look}, // first: it may be gone
		{{.wanted = true, .exists = true, .deleting = true, .doubtful = true}, Step::look},
		{{.wanted = true, .exists = true}, Step::none},
		{{.wanted = true, .doubtful = true}, Step::create},
	};
	for (std::size_t i = 0; i < std::size(rows); i++) {
		INFO(i);
		CHECK(next_step(rows[i].facts) == rows[i].is);
	}
	CHECK(node_of_reservation("slurm-7-3ef-n-1") == "n-1");
	CHECK(node_of_reservation("slurm-7-3ef").empty());
	CHECK(node_of_reservation("other-7-3ef-n1").empty());
}
