// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Pods that hold the devices of Slurm's own jobs where no node is mixed.
#include "test/unit/catch.h"
#include "test/unit/core/reservation_world.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;

namespace {

struct DeviceWorld : ReservationWorld {
	explicit DeviceWorld(Sharing sharing = Sharing::dedicated)
		: ReservationWorld([sharing](ClusterSettings &s) {
			  s.nodes.sharing = sharing;
			  s.resources = {{"example.com/card", "gpu", ""}};
		  })
	{
		allocatable = {{"example.com/card", 4}};
		restart();
		controller->jobs_replaced({});
	}
	// With the devices 0 and 1, and a GRES of which no kubelet knows.
	NativeJobPtr gpu_job(std::uint32_t id, const std::vector<std::string> &on = {"n1"}, bool requeues = true)
	{
		auto with = std::make_shared<NativeJob>(*job(id, 3, on, requeues));
		for (NativeShare &s : with->shares) {
			s.gres = {{"gpu", "a100", 2, {0, 1}}, {"token", "", 1, {}}};
			s.cores = {1, 2, 3};
		}
		return with;
	}
	std::int64_t milli_cpu(const std::string &of) const { return pods.contains(of) ? pods.at(of).milli_cpu : -1; }
	const std::string pod = "slurm-7-3ef-n1";
};

} // namespace

TEST_CASE("device reservations: a job's devices are held on shared nodes that are not mixed, and nothing else")
{
	DeviceWorld w(GENERATE(Sharing::none, Sharing::dedicated));
	w.foreign("all-cores", "default", 8); // the taint is who keeps others off these
	w.controller->arrived(w.gpu_job(7, {"n1", "alone"}));
	CHECK(w.fate(7) == "waits");
	w.run();
	CHECK(w.fate(7) == "launched");
	REQUIRE(w.pods.size() == 2);
	const ForeignPod &held = w.pods.at(w.pod);
	CHECK(held.extended == std::map<std::string, std::int64_t>{{"example.com/card", 2}});
	CHECK(held.milli_cpu == 0);
	CHECK(held.memory_bytes == 16 << 20);
	CHECK(w.controller->covers(held.meta.uid));
	w.controller->ended(w.gpu_job(7)->ref);
	w.controller->left({7, 1007}, {});
	w.run();
	CHECK(w.only_pod() == "all-cores");
}

TEST_CASE("device reservations: who has no device of a kubelet, or whose administrator wants none, holds no pod")
{
	DeviceWorld w;
	SECTION("a job without devices")
	w.controller->arrived(w.job(7, 3));
	SECTION("devices of which the settings say nothing")
	{
		auto other = std::make_shared<NativeJob>(*w.gpu_job(7));
		other->shares[0].gres = {{"token", "", 1, {}}};
		w.controller->arrived(other);
	}
	SECTION("a kubelet that knows none")
	{
		w.allocatable.clear();
		w.list();
		w.controller->arrived(w.gpu_job(7));
	}
	SECTION("reservations.devices: false")
	{
		w.settings.reservations.devices = false;
		w.restart();
		w.controller->arrived(w.gpu_job(7));
	}
	w.run();
	CHECK(w.pods.empty());
	CHECK(w.fate(7) == "launched");
}

TEST_CASE("device reservations: a job gets in Slurm the devices that the kubelet gave its pod, and is launched then")
{
	DeviceWorld w;
	w.tell_devices("n1", "", "");
	w.controller->arrived(w.gpu_job(7));
	w.run();
	CHECK(w.fate(7) == "waits");
	w.tell_devices("n1", w.pod, "2,3");
	CHECK(w.given == std::vector<std::string>{"7 n1 gpu 2-3"});
	w.run();
	CHECK(w.fate(7) == "launched");
}

TEST_CASE("device reservations: on a node that is new a job waits for what an agent may tell, for half a minute at most")
{
	DeviceWorld w;
	w.settings.nodes.gate_timeout = Millis(60'000);
	w.nodes_made_at = w.timer.wall_seconds() + GENERATE(0, 3); // by a clock that is ahead
	w.restart();
	w.controller->jobs_replaced({});
	w.controller->arrived(w.gpu_job(7));
	w.run(Millis(1'000));
	REQUIRE(w.pods.contains(w.pod));
	CHECK(w.fate(7) == "waits");
	SECTION("it tells of others")
	{
		w.tell_devices("n1", w.pod, "2,3");
		w.run();
		CHECK(w.given == std::vector<std::string>{"7 n1 gpu 2-3"});
	}
	SECTION("there is none")
	{
		w.run(Millis(23'000));
		CHECK(w.fate(7) == "waits");
		w.run(Millis(12'000));
		CHECK(w.given.empty());
	}
	CHECK(w.fate(7) == "launched");
}

TEST_CASE("device reservations: a pod of a job that runs stays while its kubelet knows no devices for a moment")
{
	DeviceWorld w;
	w.controller->arrived(w.gpu_job(7));
	w.run();
	w.allocatable.clear();
	w.list();
	w.run(Millis(20'000));
	CHECK(w.only_pod() == w.pod);
	CHECK(w.controller->covers(w.pods.at(w.pod).meta.uid));
}

TEST_CASE("device reservations: a job is not launched on cores that a pod has, though its own holds its devices")
{
	DeviceWorld w;
	w.taken_by = [](const NativeShare &s) {
		return s.cores == std::vector<std::uint16_t>{1, 2, 3} ? std::optional(PodKey{"c", "a", "b", "uid"}) : std::nullopt;
	};
	w.controller->arrived(w.gpu_job(7));
	w.run();
	CHECK(w.fate(7) == "back after 0 s");
	CHECK(w.answers.at(7).why.find("pod a/b holds its cores or devices") != std::string::npos);
}

TEST_CASE("device reservations: without Kubernetes only those wait that may have its devices")
{
	DeviceWorld w;
	w.restart(false);
	w.controller->arrived(w.gpu_job(7));
	w.controller->arrived(w.job(8, 3));
	CHECK(w.fate(7) == "waits");
	CHECK(w.fate(8) == "launched");
	w.list();
	w.run();
	CHECK(w.fate(7) == "launched");
	CHECK(w.only_pod() == w.pod);
}

TEST_CASE("device reservations: a job that waits for no word of Kubernetes is not launched on cores that a pod has either")
{
	DeviceWorld w;
	w.taken_by = [](const NativeShare &) { return std::optional(PodKey{"c", "a", "b", "uid"}); };
	w.restart(false);
	w.controller->arrived(w.job(8, 3));
	CHECK(w.fate(8) == "back after 0 s");
	CHECK(w.answers.at(8).why.find("pod a/b holds its cores or devices") != std::string::npos);
}

TEST_CASE("device reservations: a pod is made anew, with all that its job has, when its node becomes mixed")
{
	DeviceWorld w;
	w.settings.nodes.groups = {{"pool=gpu", Sharing::mixed}};
	w.restart();
	w.controller->jobs_replaced({});
	w.kubelets = GENERATE(true, false); // running, or in the gate
	w.controller->arrived(w.gpu_job(7, {"n1"}, false));
	w.run();
	CHECK(w.milli_cpu(w.pod) == 0);
	w.label("n1", "pool", "gpu");
	w.run(Millis(5'000));
	CHECK(w.milli_cpu(w.pod) == 3000);
	CHECK(w.ended.empty()); // that is nobody's eviction
	CHECK(w.fate(7) == (w.kubelets ? "launched" : "waits"));
	const std::string uid = w.pods.at(w.pod).meta.uid;
	w.label("n1", "pool", "cpu"); // too much is no harm
	w.run(Millis(5'000));
	CHECK(w.pods.at(w.pod).meta.uid == uid);
	CHECK(w.controller->covers(uid));
}

TEST_CASE("device reservations: a batch job whose node becomes mixed in the gate goes back rather than to start with its devices only")
{
	DeviceWorld w;
	w.settings.nodes.groups = {{"pool=gpu", Sharing::mixed}};
	w.restart();
	w.kubelets = false;
	w.controller->arrived(w.gpu_job(7));
	w.run();
	w.label("n1", "pool", "gpu");
	w.run(Millis(100));
	CHECK(w.fate(7) == "back after 0 s");
	CHECK(w.answers.at(7).why.find("holds its devices only") != std::string::npos);
}

TEST_CASE("device reservations: where nodes are mixed no more, jobs with devices keep their pods, and others lose theirs")
{
	DeviceWorld w(Sharing::mixed);
	auto on_two = std::make_shared<NativeJob>(*w.gpu_job(7, {"n1", "n2"}));
	on_two->shares[1].gres.clear();
	w.controller->arrived(on_two);
	w.controller->arrived(w.job(8, 2));
	w.run();
	REQUIRE(w.pods.size() == 3);
	const std::string uid = w.pods.at(w.pod).meta.uid, in_use = "slurm-7-3ef-n2";
	w.pods.at(in_use).container = std::make_shared<JobContainerState>(); // tasks run in it
	w.settings.nodes.sharing = Sharing::dedicated;
	w.restart();
	w.controller->jobs_replaced({on_two, w.job(8, 2)});
	w.run(Millis(20'000));
	CHECK(w.pods.size() == 2);
	CHECK(w.pods.at(w.pod).meta.uid == uid);
	CHECK(w.controller->covers(uid));
	w.controller->left(on_two->ref, {"n1", "n2"}); // what Slurm says of one that runs
	w.run(Millis(20'000));
	CHECK(w.pods.contains(in_use));
	CHECK(w.controller->covers(uid));
	w.controller->ended(on_two->ref);
	w.controller->left(on_two->ref, {});
	w.run();
	CHECK(w.pods.empty());
}

TEST_CASE("device reservations: the pod of a job with devices that only Kubernetes knows says of which its steps are told")
{
	DeviceWorld w;
	w.settings.resources = {{"example.com/card", "gpu", ""}, {"rdma/hca", "k8s", "rdma_hca"}};
	w.allocatable = {{"example.com/card", 4}, {"rdma/hca", 2}};
	w.restart();
	w.controller->jobs_replaced({});
	w.list();
	auto with = std::make_shared<NativeJob>(*w.gpu_job(7));
	const bool has_one = GENERATE(true, false);
	if (has_one)
		with->shares[0].gres.push_back({"k8s", "rdma_hca", 1, {}});
	w.controller->arrived(with);
	w.run();
	CHECK(w.fate(7) == "launched"); // nobody waits for numbers of devices that Slurm does not have
	REQUIRE(w.objects.contains(w.pod));
	CHECK(w.objects.at(w.pod)["metadata"]["annotations"]["slurm-k8s.io/step-devices"].str() == (has_one ? "rdma/hca" : ""));
	const auto held = w.pods.at(w.pod).extended;
	CHECK(held.contains("rdma/hca") == has_one);
	CHECK(held.at("example.com/card") == 2);
}
