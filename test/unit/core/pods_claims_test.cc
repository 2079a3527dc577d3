// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Pods that claim devices: their claims get what Slurm has chosen, before the Binding.
#include "lib/core/names.h"
#include "test/unit/catch.h"
#include "test/unit/core/world.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;

namespace {

using Indices = std::vector<std::uint16_t>;

struct Drivers : World {
	Drivers() { start_with_drivers(); }

	std::string create_claiming(const std::string &name, std::vector<kube::PodResourceClaim> wanted)
	{
		const std::string uid = create_pod(name, [&](kube::Pod &p) { p.resource_claims = std::move(wanted); });
		run(Millis(1000));
		return uid;
	}
	void starts(const std::string &name, const Indices &devices, const std::string &node = "n1")
	{
		job_of(name)->gres.clear();
		if (!devices.empty())
			job_of(name)->gres = {{"gpu", "", devices.size(), devices}};
		slurm_starts(name, node, {static_cast<std::uint16_t>(jobs.size())});
		run();
	}
	std::string devices_of(const std::string &name)
	{
		std::string out;
		for (const auto &d : claim(name).devices)
			out += (out.empty() ? "" : ",") + d.pool + "/" + d.device;
		return out;
	}
	std::string said(const std::string &name) { return conditions.contains(name) ? conditions.at(name).message : ""; }
	JobRequest request_of(const std::string &name) { return std::ranges::find(jobs, name, [](const SlurmJob &j) { return j.key.name; })->request; }
};

Json selector(const std::string &expression)
{
	Json list = Json::array();
	list.append(Json::object().set("cel", Json::object().set("expression", expression)));
	return Json::object().set("selectors", list);
}

} // namespace

TEST_CASE("a pod's claim gets just the devices that Slurm gave its job, and then the pod is bound")
{
	Drivers w;
	w.create_claim("c", 2);
	const std::string uid = w.create_claiming("p", {{"gpus", "c"}});
	REQUIRE(w.job_of("p"));
	CHECK(gres_request(w.request_of("p").gres) == "gpu:2");
	CHECK(w.devices_of("c").empty());
	w.starts("p", {1, 3});
	CHECK(w.devices_of("c") == "n1/gpu-1,n1/gpu-3");
	CHECK(w.claim("c").reserved_for == std::vector{uid});
	CHECK(is_protected(w.claim("c")));
	CHECK(w.pod("p").node_name == "n1");
	CHECK(w.count("claim") == 2);
	const auto last_claim = std::ranges::find(w.calls.rbegin(), w.calls.rend(), "claim"), bind = std::ranges::find(w.calls.rbegin(), w.calls.rend(), "bind");
	CHECK(bind < last_claim);
	CHECK(w.holds->held_by({"c", "team-a", "p", uid})->hold.gres.at(0).devices == Indices{1, 3});
}

TEST_CASE("a pod with several claims asks for all of them together")
{
	Drivers w;
	w.create_claim("c", 1);
	w.create_claim("d", 2);
	w.create_claiming("p", {{"a", "c"}, {"b", "d"}});
	CHECK(gres_request(w.request_of("p").gres) == "gpu:3");
	w.starts("p", {0, 2, 3}, "n2");
	CHECK(w.devices_of("c") == "n2/gpu-0");
	CHECK(w.devices_of("d") == "n2/gpu-2,n2/gpu-3");
	CHECK(w.pod("p").node_name == "n2");
}

TEST_CASE("a pod waits for its claim, and goes on when it is there")
{
	Drivers w;
	w.create_claiming("p", {{"gpus", "c"}});
	CHECK(w.said("p") == "resource claim c does not exist");
	CHECK(w.jobs.empty());
	w.create_claim("c", 1);
	w.run();
	CHECK(w.jobs.size() == 1);
	// of a template: its name is not known before somebody has made it
	w.create_claiming("q", {{"gpus", ""}});
	CHECK(w.said("q") == "its claim gpus has not been made from its template yet, by kube-controller-manager");
}

TEST_CASE("what a claim cannot have from Slurm is refused and said, and what mends it is noticed")
{
	Drivers w;
	w.create_claim("all", 1, Json::object().set("allocationMode", "All"));
	w.create_claiming("p", {{"gpus", "all"}});
	CHECK(w.said("p") == "resource claim all, request gpus: it wants no exact number of devices (allocationMode), which is not supported");
	w.create_claim("many", 5);
	w.create_claiming("q", {{"gpus", "many"}});
	CHECK(w.said("q") == "no node has devices for its resource claims: 2 too few devices of class gpu.example.com");
	w.create_claim("h100", 1, selector("device.attributes['gpu.example.com'].model == 'h100'"));
	w.create_claiming("r", {{"gpus", "h100"}});
	CHECK(w.said("r") == "no node has devices for its resource claims: 2 not all devices of class gpu.example.com there are as its selector wants");
	CHECK(w.jobs.empty());
	auto n2 = std::make_shared<kube::ResourceSlice>(*w.slices.at(1));
	for (auto &d : n2->devices)
		d.attributes["gpu.example.com/model"] = std::string("h100");
	w.dra->inventory.slice_changed(n2);
	w.controller->dra_changed();
	w.run();
	REQUIRE(w.job_of("r"));
	CHECK(w.excluded("r") == "n1,slurm-only,n1");
	w.dra->inventory.class_removed(w.device_classes.at(0));
	w.controller->dra_changed();
	w.create_claim("c", 1);
	w.create_claiming("s", {{"gpus", "c"}});
	CHECK(w.said("s") == "Kubernetes has no device class gpu.example.com");
}

TEST_CASE("nodes whose devices change are excluded for a job that waits")
{
	Drivers w;
	w.create_claim("c", 1, selector("device.attributes['gpu.example.com'].model == 'a100'"));
	w.create_claiming("p", {{"gpus", "c"}});
	CHECK(w.excluded("p") == "slurm-only,slurm-only");
	auto n1 = std::make_shared<kube::ResourceSlice>(*w.slices.at(0));
	n1->devices.at(2).tainted = true;
	w.dra->inventory.slice_changed(n1);
	w.controller->dra_changed();
	w.run();
	CHECK(w.excluded("p") == "n1,slurm-only,n1");
}

TEST_CASE("devices that another claim has are given to nobody")
{
	Drivers w;
	w.create_claim("others", 1);
	w.claim_changes("others", *Json::parse(R"({"status":{"allocation":{"devices":{"results":[
		{"request":"gpus","driver":"gpu.example.com","pool":"n1","device":"gpu-1"}]}},"reservedFor":[{"resource":"pods","name":"x","uid":"x"}]}})"));
	w.create_claim("c", 1);
	w.create_claiming("p", {{"gpus", "c"}});
	w.starts("p", {1});
	CHECK(w.count("bind") == 0);
	CHECK(w.devices_of("c").empty());
	w.run(w.settings.pods.bind_timeout + Millis(120'000));
	CHECK(w.count("bind") == 0);
	CHECK(w.events_text().find("device gpu-1 of node n1 is allocated to resource claim team-a/others") != std::string::npos);
	CHECK_FALSE(w.masked("n1"));
	// and a pod that wants that very claim waits: who has it may be over
	w.create_claiming("q", {{"gpus", "others"}});
	CHECK(w.said("q") == "resource claim others has devices that no pod uses any more, and is not free yet");
}

TEST_CASE("a device that another claim gets while a pod's claim is being written is not given a second time")
{
	Drivers w;
	w.create_claim("others", 1);
	w.create_claim("c", 1);
	w.create_claiming("p", {{"gpus", "c"}});
	w.at_claim_patch = [&] {
		w.claim_changes("others", *Json::parse(R"({"status":{"allocation":{"devices":{"results":[
			{"request":"gpus","driver":"gpu.example.com","pool":"n1","device":"gpu-1"}]}},
			"reservedFor":[{"resource":"pods","name":"x","uid":"x"}]}})"));
	};
	w.starts("p", {1});
	CHECK(is_protected(w.claim("c")));
	CHECK(w.devices_of("c").empty());
	CHECK(w.count("bind") == 0);
	CHECK(w.said("p").find("device gpu-1 of node n1 is allocated to resource claim team-a/others") != std::string::npos);
}

namespace {

// p and q have one claim.
struct TwoPods : Drivers {
	std::string p, q;

	TwoPods()
	{
		create_claim("c", 1);
		p = create_claiming("p", {{"gpus", "c"}});
		q = create_claiming("q", {{"gpus", "c"}});
		starts("p", {2});
	}
	Indices masked_gpus()
	{
		holds->let_masks_go();
		const NodeMask *m = mask("n1");
		return m ? devices_named(m->gres, "gpu") : Indices{};
	}
	std::size_t jobs_named(const std::string &name)
	{
		return static_cast<std::size_t>(std::ranges::count(jobs, name, [](const SlurmJob &j) { return j.key.name; }));
	}
};

} // namespace

TEST_CASE("of pods that share a claim the first one's job has its devices, and the others run beside it without any of their own")
{
	TwoPods w;
	// which waited for one, too
	REQUIRE(w.jobs_named("q") == 2);
	CHECK(w.job_of("q")->state == SK8_JOB_PENDING);
	CHECK(w.jobs.back().request.gres.empty());
	CHECK(w.excluded("q") == "n2,slurm-only,n2");
	CHECK(w.masked_gpus().empty());
	w.starts("q", {});
	CHECK(w.pod("q").node_name == "n1");
	CHECK(w.claim("c").reserved_for == std::vector{w.p, w.q});
	CHECK(w.devices_of("c") == "n1/gpu-2");
	for (const Hold &h : w.journal.saved().holds)
		CHECK(h.shared == (h.key.uid == w.q ? GresList{{"gpu", "", 1, {2}}} : GresList{}));
	w.kubelet_starts("p");
	w.kubelet_starts("q");
	w.run();
	w.kubelet_ends("p", 0);
	w.run(Millis(5'000));
	CHECK_FALSE(w.holds->held({"c", "team-a", "p", w.p}));
	CHECK(w.masked_gpus() == Indices{2});
	w.claim_changes("c", *Json::parse(R"({"status":{"reservedFor":[{"resource":"pods","name":"q","uid":")" + w.q + R"("}]}})"));
	w.run(Millis(5'000));
	CHECK(w.masked_gpus() == Indices{2});
	w.kubelet_ends("q", 0);
	w.run(Millis(5'000));
	CHECK(w.masked_gpus().empty());
	CHECK(w.jobs_named("p") == 1);
	CHECK(w.jobs_named("q") == 2);
}

TEST_CASE("a pod whose Binding had no answer is bound when others have come to share what its job has")
{
	Drivers w;
	w.create_claim("c", 1);
	const std::string p = w.create_claiming("p", {{"gpus", "c"}}), q = w.create_claiming("q", {{"gpus", "c"}});
	w.fail["bind"] = {0};
	w.starts("p", {2});
	REQUIRE(w.pod("p").node_name.empty());
	const JobRef job = w.job_of("p")->ref;
	w.starts("q", {});
	CHECK(w.pod("q").node_name == "n1");
	CHECK(w.claim("c").reserved_for == std::vector{p, q});
	w.run(Millis(10'000));
	CHECK(w.pod("p").node_name == "n1");
	CHECK(w.claim("c").reserved_for == std::vector{p, q});
	CHECK(w.devices_of("c") == "n1/gpu-2");
	CHECK(w.job_of("p")->ref == job); // with the job that it had
}

TEST_CASE("a pod that may be bound with a part of a claim gets a job without devices, also when the others are gone and its own is forgotten")
{
	TwoPods w;
	w.fail["bind"] = std::deque<int>(40, 0);
	w.starts("q", {});
	w.kubelet_starts("p");
	w.run();
	w.kubelet_ends("p", 0);
	w.run(Millis(5'000));
	REQUIRE(w.pod("q").node_name.empty());
	w.claim_changes("c", *Json::parse(R"({"status":{"reservedFor":[{"resource":"pods","name":"q","uid":")" + w.q + R"("}]}})"));
	w.run();
	w.fail.clear();
	std::erase_if(w.jobs, [](const auto &j) { return j.key.name == "q"; });
	w.restart();
	w.run(Millis(10'000));
	CHECK(w.pod("q").node_name == "n1");
	CHECK(w.job_of("q")->gres.empty());
	CHECK(w.masked_gpus() == Indices{2});
	CHECK(w.devices_of("c") == "n1/gpu-2");
}

TEST_CASE("a claim that is freed before the second pod has it is that pod's own, with a job that asks for its devices")
{
	TwoPods w;
	w.kubelet_starts("p");
	w.run();
	w.kubelet_ends("p", 0);
	w.run(Millis(5'000));
	SECTION("while its job waits") {}
	SECTION("when its job has started meanwhile")
	{
		w.starts("q", {});
		CHECK(w.pod("q").node_name.empty());
		CHECK(w.masked_gpus().empty());
	}
	w.claim_changes("c", *Json::parse(R"({"status":{"allocation":null,"reservedFor":null}})"));
	w.run(Millis(60'000));
	REQUIRE(w.job_of("q")->state == SK8_JOB_PENDING);
	CHECK(gres_request(w.jobs.back().request.gres) == "gpu:1");
	w.starts("q", {0}, "n2");
	CHECK(w.devices_of("c") == "n2/gpu-0");
	CHECK(w.pod("q").node_name == "n2");
}

TEST_CASE("a job that started elsewhere than the devices that its pod shares goes back")
{
	TwoPods w;
	w.starts("q", {}, "n2"); // an administrator changed its excluded nodes
	CHECK(w.pod("q").node_name.empty());
	CHECK(w.jobs_named("q") == 3);
	w.starts("q", {});
	CHECK(w.pod("q").node_name == "n1");
}

TEST_CASE("pods that share a claim are found again with it, and no job is given its devices, whatever slurmctld has forgotten")
{
	const bool ledger = GENERATE(true, false), jobs = GENERATE(true, false);
	CAPTURE(ledger, jobs);
	TwoPods w;
	w.starts("q", {});
	w.kubelet_starts("p");
	w.kubelet_starts("q");
	w.run();
	if (!ledger)
		w.journal.text.clear();
	if (!jobs)
		w.jobs.clear();
	w.restart();
	w.run(Millis(10'000));
	REQUIRE(w.job_of("p"));
	REQUIRE(w.job_of("q"));
	CHECK(w.job_of("p")->running());
	CHECK(w.job_of("q")->running());
	CHECK(w.job_of("q")->gres.empty());
	CHECK(w.masked_gpus() == Indices{2}); // q's, or both's
	w.kubelet_ends("q", 0);
	w.run(Millis(5'000));
	CHECK(w.masked_gpus() == (jobs ? Indices{} : Indices{2}));
	w.kubelet_ends("p", 0);
	w.run(Millis(5'000));
	CHECK(w.masked_gpus().empty());
}

TEST_CASE("of a claim with devices of two nodes, or with something that is no pod, no pod has a part")
{
	Drivers w;
	w.create_claim("c", 2);
	const auto has = [&](const std::string &second, const std::string &consumer) {
		w.claim_changes("c", *Json::parse(R"({"status":{"allocation":{"devices":{"results":[
			{"request":"gpus","driver":"gpu.example.com","pool":"n1","device":"gpu-1"},
			{"request":"gpus","driver":"gpu.example.com","pool":")" + second + R"("}]}},"reservedFor":[)" + consumer + "]}}"));
	};
	has(R"(n2","device":"gpu-1)", R"({"resource":"pods","name":"x","uid":"x"})");
	w.create_claiming("p", {{"gpus", "c"}});
	CHECK(w.said("p") == "resource claim c: what it has is not of one node");
	has(R"(n1","device":"gpu-9)", R"({"resource":"pods","name":"x","uid":"x"})");
	w.run(Millis(60'000));
	CHECK(w.said("p") == "resource claim c: no driver tells of device gpu-9 that it has");
	has(R"(n1","device":"gpu-2)", R"({"apiGroup":"example.com","resource":"things","name":"x","uid":"x"})");
	w.run(Millis(60'000));
	CHECK(w.said("p") == "resource claim c is in use by something that is no pod");
	CHECK(w.jobs.empty());
}

TEST_CASE("a claim that has devices of a Binding that failed is freed before its pod queues again")
{
	Drivers w;
	w.create_claim("c", 1);
	w.create_claiming("p", {{"gpus", "c"}});
	w.fail["bind"] = {422, 422, 422, 422, 422, 422, 422, 422, 422, 422, 422, 422, 422, 422, 422, 422};
	w.starts("p", {1});
	CHECK(w.devices_of("c") == "n1/gpu-1");
	w.run(w.settings.pods.bind_timeout + Millis(60'000));
	w.fail["bind"].clear();
	w.run(Millis(60'000));
	CHECK(w.devices_of("c").empty());
	CHECK_FALSE(w.claim("c").allocated);
	REQUIRE(w.job_of("p")->state == SK8_JOB_PENDING);
	w.starts("p", {0}, "n2");
	CHECK(w.devices_of("c") == "n2/gpu-0");
	CHECK(w.pod("p").node_name == "n2");
}

TEST_CASE("writes of claims that fail are tried again, and no pod is bound without its devices")
{
	for (const int status : {0, 403, 409, 500}) {
		Drivers w;
		w.create_claim("c", 1);
		w.create_claiming("p", {{"gpus", "c"}});
		w.fail["claim"] = {status, status};
		w.starts("p", {2});
		CHECK(w.count("bind") == 0);
		w.run(Millis(10'000));
		CHECK(w.devices_of("c") == "n1/gpu-2");
		CHECK(w.pod("p").node_name == "n1");
	}
}

TEST_CASE("slurmctld that dies between claim and Binding goes on with the Binding")
{
	Drivers w;
	w.create_claim("c", 1);
	w.create_claiming("p", {{"gpus", "c"}});
	w.fail["bind"] = {0};
	w.starts("p", {2});
	CHECK(w.devices_of("c") == "n1/gpu-2");
	const int before = w.count("claim");
	w.restart();
	w.run(Millis(10'000));
	CHECK(w.pod("p").node_name == "n1");
	CHECK(w.count("claim") == before);
}

TEST_CASE("a pod that was found running with a claim holds what the claim has, and Slurm's record follows")
{
	Drivers w;
	w.create_claim("c", 1);
	const std::string uid = w.create_pod("p", [](kube::Pod &p) {
		p.resource_claims = {{"gpus", "c"}};
		p.node_name = "n1";
		p.phase = "Running";
	});
	w.run(Millis(1000));
	CHECK(w.jobs.empty()); // nobody knows which devices its job must have
	w.claim_changes("c", *Json::parse(R"({"status":{"allocation":{"devices":{"results":[
		{"request":"gpus","driver":"gpu.example.com","pool":"n1","device":"gpu-3"}]}},"reservedFor":[{"resource":"pods","name":"p","uid":")" + uid +
					  R"("}]}})"));
	w.run(Millis(1000));
	CHECK(w.holds->held_by({"c", "team-a", "p", uid})->hold.gres == GresList{{"gpu", "", 1, {3}}});
	REQUIRE(w.job_of("p"));
	CHECK(w.request_of("p").required_node == "n1");
	CHECK(gres_request(w.request_of("p").gres) == "gpu:1");
	CHECK(w.request_of("p").devices == GresList{{"gpu", "", 1, {3}}});
	CHECK(w.job_of("p")->gres == GresList{{"gpu", "", 1, {3}}});
}

TEST_CASE("a pod that may be bound already keeps the devices of its claim, and the job that it gets anew has these")
{
	Drivers w;
	w.create_claim("c", 1);
	w.create_claiming("p", {{"gpus", "c"}});
	w.fail["bind"] = {0};
	w.starts("p", {3});
	CHECK(w.devices_of("c") == "n1/gpu-3");
	w.jobs.clear();
	SECTION("at once") {}
	SECTION("when nobody else has them in Slurm any more")
	{
		w.natives_devices = {3};
		w.restart();
		w.run(Millis(10'000));
		CHECK(w.job_of("p")->gres == GresList{{"gpu", "", 1, {0}}});
		CHECK(w.devices_of("c") == "n1/gpu-3");
		CHECK(w.pod("p").node_name.empty());
		w.natives_devices.clear();
		w.jobs.clear();
	}
	w.restart();
	w.run(Millis(10'000));
	CHECK(w.job_of("p")->gres == GresList{{"gpu", "", 1, {3}}});
	CHECK(w.devices_of("c") == "n1/gpu-3");
	CHECK(w.pod("p").node_name == "n1");
}

TEST_CASE("a pod that may be bound already, and whose job starts on other devices than its claim has, holds these, and its job gets them")
{
	Drivers w;
	w.create_claim("c", 2);
	const std::string uid = w.create_claiming("p", {{"gpus", "c"}});
	w.fail["bind"] = {0};
	w.starts("p", {0, 1});
	CHECK(w.devices_of("c") == "n1/gpu-0,n1/gpu-1");
	const int writes = w.count("claim");
	w.nodes_take_jobs = false; // Slurm starts it by itself
	w.slurm_forgets_start("p");
	SECTION("at once")
	{
		w.restart();
		w.run(Millis(1'000));
		w.starts("p", {2, 3});
	}
	SECTION("when they are free")
	{
		w.natives_devices = {1};
		w.restart();
		w.run(Millis(1'000));
		w.starts("p", {2, 3});
		w.run(Millis(5'000));
		CHECK(w.job_of("p")->gres == GresList{{"gpu", "", 2, {2, 3}}});
		CHECK(devices_named(w.holds->held_by({"c", "team-a", "p", uid})->hold.gres, "gpu") == Indices{0, 1, 2, 3});
		REQUIRE(w.mask("n1")); // from whom the other job gets
		CHECK(devices_named(w.mask("n1")->gres, "gpu") == Indices{0, 1});
		CHECK(w.pod("p").node_name.empty());
		w.natives_devices.clear();
	}
	w.run(Millis(10'000));
	CHECK(w.job_of("p")->gres == GresList{{"gpu", "", 2, {0, 1}}});
	CHECK(w.holds->held_by({"c", "team-a", "p", uid})->hold.gres == GresList{{"gpu", "", 2, {0, 1}}});
	CHECK(w.pod("p").node_name == "n1");
	CHECK(w.count("claim") == writes);
}

TEST_CASE("a pod that was found running holds what is known of its claims, and gets no job before all of it is")
{
	Drivers w;
	w.create_claim("c", 2);
	const std::string uid = w.create_pod("p", [](kube::Pod &p) {
		p.resource_claims = {{"gpus", "c"}};
		p.node_name = "n1";
		p.phase = "Running";
	});
	w.claim_changes("c", *Json::parse(R"({"status":{"allocation":{"devices":{"results":[
		{"request":"gpus","driver":"gpu.example.com","pool":"n1","device":"gpu-3"},
		{"request":"gpus","driver":"away.example.com","pool":"n1","device":"gpu-0"}]}},
		"reservedFor":[{"resource":"pods","name":"p","uid":")" + uid + R"("}]}})"));
	w.run(Millis(1000));
	CHECK(w.holds->held_by({"c", "team-a", "p", uid})->hold.gres == GresList{{"gpu", "", 1, {3}}});
	CHECK(w.jobs.empty());
}

static Json given(const std::string &device, const std::string &pod, const std::string &uid)
{
	return *Json::parse(R"({"status":{"allocation":{"devices":{"results":[{"request":"gpus","driver":"gpu.example.com","pool":"n1","device":")" +
			    device + R"("}]}},"reservedFor":[{"resource":"pods","name":")" + pod + R"(","uid":")" + uid + R"("}]}})");
}

TEST_CASE("what a running pod's claim has is held as soon as its driver tells which devices these are")
{
	Drivers w;
	const auto slice = w.slices.at(0);
	w.slices.erase(w.slices.begin());
	w.restart();
	w.create_claim("c", 1);
	const std::string uid = w.create_pod("p", [](kube::Pod &p) {
		p.resource_claims = {{"gpus", "c"}};
		p.node_name = "n1";
		p.phase = "Running";
	});
	w.claim_changes("c", given("gpu-3", "p", uid));
	w.run(Millis(1000));
	REQUIRE(w.holds->held_by({"c", "team-a", "p", uid}));
	CHECK(w.holds->held_by({"c", "team-a", "p", uid})->hold.gres.empty());
	w.dra->inventory.slice_changed(slice);
	w.controller->dra_changed();
	CHECK(w.holds->held_by({"c", "team-a", "p", uid})->hold.gres == GresList{{"gpu", "", 1, {3}}});
}

TEST_CASE("of a pod's claims one gets a device that another one of the same pod had, which is freed first")
{
	Drivers w;
	w.create_claim("c", 1);
	w.create_claim("d", 1);
	const std::string uid = w.create_claiming("p", {{"a", "c"}, {"b", "d"}});
	w.claim_changes("d", given("gpu-0", "p", uid)); // a write that was late
	w.run();
	w.starts("p", {0, 1});
	w.run(Millis(1000));
	CHECK(w.devices_of("c") == "n1/gpu-0");
	CHECK(w.devices_of("d") == "n1/gpu-1");
	CHECK(w.pod("p").node_name == "n1");
}

TEST_CASE("a claim that gets devices late is freed while its pod waits, so that others can have them")
{
	Drivers w;
	w.create_claim("c", 1);
	const std::string uid = w.create_claiming("p", {{"gpus", "c"}});
	REQUIRE(w.job_of("p")->state == SK8_JOB_PENDING);
	w.claim_changes("c", given("gpu-2", "p", uid));
	w.run(Millis(1000));
	CHECK_FALSE(w.claim("c").allocated);
	CHECK(w.job_of("p")->state == SK8_JOB_PENDING);
	w.starts("p", {1});
	CHECK(w.devices_of("c") == "n1/gpu-1");
	CHECK(w.pod("p").node_name == "n1");
}

TEST_CASE("a claim that has devices for pods of which none was bound is freed: each would wait for the other to use them")
{
	Drivers w;
	w.create_claim("c", 1);
	const std::string p = w.create_claiming("p", {{"gpus", "c"}}), q = w.create_claiming("q", {{"gpus", "c"}});
	const auto has = [&](const std::string &more) {
		w.claim_changes("c", *Json::parse(R"({"status":{"allocation":{"devices":{"results":[
			{"request":"gpus","driver":"gpu.example.com","pool":"n1","device":"gpu-2"}]}},"reservedFor":[
			{"resource":"pods","name":"p","uid":")" + p + R"("},{"resource":"pods","name":"q","uid":")" + q + R"("})" + more + "]}}"));
		w.run(Millis(120'000));
	};
	SECTION("while their jobs wait") {}
	SECTION("when they have none") { w.jobs.clear(), w.restart(); }
	SECTION("not if somebody else is to have it, too")
	{
		has(R"(,{"resource":"pods","name":"x","uid":"x"})");
		CHECK(w.devices_of("c") == "n1/gpu-2");
		return;
	}
	has("");
	CHECK_FALSE(w.claim("c").allocated);
	for (const std::string name : {"p", "q"}) {
		REQUIRE(w.job_of(name));
		CHECK(w.job_of(name)->state == SK8_JOB_PENDING);
		CHECK(gres_request(w.request_of(name).gres) == "gpu:1");
	}
	w.starts("p", {1});
	CHECK(w.pod("p").node_name == "n1");
}

TEST_CASE("a pod has no part of a claim whose device somebody else's claim has got, too")
{
	TwoPods w;
	w.create_claim("x", 1);
	w.claim_changes("x", given("gpu-2", "somebody", "uid-x"));
	w.run();
	w.starts("q", {});
	w.run(Millis(1000));
	CHECK(w.pod("q").node_name.empty());
	CHECK(w.said("q").find("device gpu-2 of node n1 is allocated to resource claim team-a/x") != std::string::npos);
}

TEST_CASE("a pod whose job ends while its claims get their devices is not bound, and queues again")
{
	Drivers w;
	w.create_claim("c", 1);
	w.create_claiming("p", {{"gpus", "c"}});
	w.at_claim_patch = [&] { w.slurm_ends("p", SK8_JOB_NODE_FAIL); };
	w.starts("p", {2});
	w.run(Millis(60'000));
	CHECK(w.pod("p").node_name.empty());
	CHECK_FALSE(w.pod("p").meta.deleting);
	REQUIRE(w.job_of("p"));
	CHECK(w.job_of("p")->state == SK8_JOB_PENDING);
}

TEST_CASE("a pod that is released by hand while its claims get their devices is bound when it holds something again")
{
	Drivers w;
	w.create_claim("c", 1);
	const std::string uid = w.create_claiming("p", {{"gpus", "c"}});
	w.at_claim_patch = [&] {
		CHECK(w.controller->release_by_hand(uid, "root (uid 0)", true).ok());
		REQUIRE(w.controller->save_journal());
	};
	w.starts("p", {2}); // a Binding without a hold would be an error of World
	w.run(Millis(60'000));
	CHECK(w.pod("p").node_name == "n1");
	CHECK(w.devices_of("c") == "n1/gpu-2");
}

TEST_CASE("a pod whose job is forgotten while its driver is away keeps its devices, and gets a job that has them when it is back")
{
	Drivers w;
	w.create_claim("c", 1);
	const std::string uid = w.create_claiming("p", {{"gpus", "c"}});
	w.starts("p", {3});
	w.kubelet_starts("p");
	w.run();
	w.jobs.clear();
	const auto slices = std::exchange(w.slices, {});
	w.restart();
	w.run(Millis(10'000));
	CHECK_FALSE(w.job_of("p"));
	CHECK(w.holds->held_by({"c", "team-a", "p", uid})->hold.gres == GresList{{"gpu", "", 1, {3}}});
	w.slices = slices;
	w.restart();
	w.run(Millis(10'000));
	REQUIRE(w.job_of("p"));
	CHECK(w.job_of("p")->gres == GresList{{"gpu", "", 1, {3}}});
}

TEST_CASE("a pod whose job starts by itself while its driver is away is deleted at once when that is preempted")
{
	Drivers w;
	w.create_claim("c", 1);
	w.create_claiming("p", {{"gpus", "c"}});
	w.starts("p", {3});
	w.kubelet_starts("p");
	w.run();
	w.slurm_forgets_start("p");
	w.slices.clear();
	w.restart();
	w.run(Millis(2'000)); // no job of it is asked to start there for half a minute
	w.starts("p", {0});
	w.slurm_preempts("p", 40);
	w.run(Millis(1'000));
	CHECK(w.pod("p").meta.deleting);
}

TEST_CASE("slurmctld that dies after the hold and before the claim, and forgets that the job ran, gives it devices all the same")
{
	Drivers w;
	w.create_claim("c", 1);
	const std::string uid = w.create_claiming("p", {{"gpus", "c"}});
	Hold hold;
	hold.key = {"c", "team-a", "p", uid};
	hold.node = "n1";
	hold.cores = {0};
	w.journal.hold(hold);
	REQUIRE(w.journal.flush());
	w.restart();
	w.run(Millis(10'000));
	CHECK(w.request_of("p").required_node.empty()); // the pending job is started there
	CHECK(w.job_of("p")->running());
	CHECK(w.devices_of("c") == "n1/gpu-0");
	CHECK(w.pod("p").node_name == "n1");
}

TEST_CASE("a pod whose claims have no devices for it was not bound: it is kept no longer where no job of it can be made")
{
	Drivers w;
	w.create_claim("c", 1);
	const std::string uid = w.create_claiming("p", {{"gpus", "c"}});
	Hold hold;
	hold.key = {"c", "team-a", "p", uid};
	hold.node = "n1";
	hold.cores = {0};
	hold.gres = {{"gpu", "", 1, {2}}};
	w.journal.hold(hold);
	REQUIRE(w.journal.flush());
	w.nodes_take_jobs = false; // another one that is kept there holds what it wants
	bool given_to_it = false;
	SECTION("with the job that it had") {}
	SECTION("without") { w.jobs.clear(); }
	SECTION("but not if they have")
	{
		w.claim_changes("c", given("gpu-2", "p", uid));
		given_to_it = true;
	}
	w.restart();
	w.run(Millis(5'000));
	CHECK(w.journal.holds(uid));
	w.run(Millis(180'000));
	REQUIRE(w.journal.holds(uid) == given_to_it);
	if (given_to_it)
		return;
	REQUIRE(w.job_of("p"));
	CHECK(w.job_of("p")->state == SK8_JOB_PENDING);
	CHECK(w.jobs.back().request.required_node.empty());
	w.starts("p", {1}, "n2");
	CHECK(w.devices_of("c") == "n2/gpu-1");
	CHECK(w.pod("p").node_name == "n2");
}

TEST_CASE("a pod that may be bound, and of which Slurm knows only a job without devices, gets one that has them")
{
	Drivers w;
	w.create_claim("c", 1);
	const std::string uid = w.create_claiming("p", {{"gpus", "c"}});
	w.jobs.back().request.gres.clear(); // of a time when others had what it claims
	Hold hold;
	hold.key = {"c", "team-a", "p", uid};
	hold.node = "n1";
	hold.cores = {0};
	w.journal.hold(hold);
	REQUIRE(w.journal.flush());
	w.restart();
	w.run(Millis(30'000));
	CHECK(w.job_of("p")->gres == GresList{{"gpu", "", 1, {0}}});
	CHECK(w.devices_of("c") == "n1/gpu-0");
	CHECK(w.pod("p").node_name == "n1");
}

TEST_CASE("a pod that was about to share devices when slurmctld died holds them alone when they are free, for its next job")
{
	TwoPods w;
	Hold hold;
	hold.key = {"c", "team-a", "q", w.q};
	hold.node = "n1";
	hold.cores = {1};
	hold.shared = {{"gpu", "", 1, {2}}};
	w.journal.hold(hold);
	REQUIRE(w.journal.flush());
	w.kubelet_starts("p");
	w.run();
	w.kubelet_ends("p", 0);
	w.run(Millis(5'000));
	w.claim_changes("c", *Json::parse(R"({"status":{"allocation":null,"reservedFor":null}})"));
	w.restart();
	w.run(Millis(30'000));
	CHECK(w.job_of("q")->gres == GresList{{"gpu", "", 1, {0}}});
	CHECK(w.masked_gpus().empty()); // else Slurm would find no place for the job
	CHECK(w.devices_of("c") == "n1/gpu-0");
	CHECK(w.pod("q").node_name == "n1");
	for (const Hold &h : w.journal.saved().holds)
		CHECK(h.shared.empty());
}

TEST_CASE("claims are refused where the settings name no device class")
{
	World w;
	w.create_pod("p", [](kube::Pod &p) { p.resource_claims = {{"gpus", "c"}}; });
	w.run(Millis(1000));
	CHECK(w.jobs.empty());
	CHECK(w.conditions.at("p").message == "it has resource claims, and clusters[].resources in slurm-k8s.yaml names no deviceClass");
}
