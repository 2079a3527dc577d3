// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Small jobs that share one reservation pod for each node.
#include "test/unit/core/reservation_world.h"

#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;

namespace {

const std::string shared = "slurm-shared-n1";

// Jobs of at most two CPUs share; eight fit on a node.
struct SharedWorld : ReservationWorld {
	explicit SharedWorld(const std::function<void(ClusterSettings &)> &configure = {})
		: ReservationWorld([&](ClusterSettings &s) {
			  s.reservations.shared.max_cpus = 2;
			  if (configure)
				  configure(s);
		  })
	{
		controller->jobs_replaced({});
	}
	NativeJobPtr arrive(std::uint32_t id, std::uint32_t cpus = 1, bool requeues = true)
	{
		auto j = job(id, cpus, {"n1"}, requeues);
		controller->arrived(j);
		return j;
	}
	// A job's pod is there, slurmctld has started anew, and jobs_replaced() will say that it has ended meanwhile.
	void leave_to_nobody()
	{
		arrive(1);
		run(Millis(100));
		restart();
		run(Millis(10'000)); // nobody lingers any more
	}
	void end(const NativeJobPtr &j)
	{
		controller->ended(j->ref);
		controller->left(j->ref, {});
	}
	// What of the shared pod is masked in Slurm, as far as the watch has told of it: CPUs.
	std::int64_t masked() const
	{
		const ForeignPod &p = *told.at(shared);
		return std::max<std::int64_t>(p.milli_cpu - controller->covered(p.meta.uid).milli_cpu, 0) / 1000;
	}
	std::int64_t masked_mb() const
	{
		const ForeignPod &p = *told.at(shared);
		return (p.memory_bytes >> 20) - controller->covered(p.meta.uid).memory_mb;
	}
	std::int64_t requested() const { return pods.at(shared).shared->resize.asked.milli_cpu / 1000; }
	std::int64_t memory_mb() const { return pods.at(shared).shared->resize.asked.memory_bytes >> 20; }
	std::string fates(std::uint32_t from, std::uint32_t to) const
	{
		std::string out;
		for (std::uint32_t id = from; id <= to; id++)
			out += fate(id).substr(0, 1); // launched, waits, back
		return out;
	}
};

} // namespace

TEST_CASE("shared reservation: another pod that takes its name while it is resized is not taken for it")
{
	SharedWorld w;
	w.arrive(1);
	w.run(Millis(100));
	const std::string ours = w.pods.at(shared).meta.uid;
	const auto stranger = std::make_shared<ForeignPod>(w.pods.at(shared));
	stranger->meta.uid = "uid-stranger";
	stranger->meta.resource_version = "100";
	w.arrive(2); // nobody has answered yet
	REQUIRE(w.resized == 1);
	w.controller->changed(stranger);
	CHECK(w.controller->covered("uid-stranger").milli_cpu == 0);
	w.run(Millis(100));
	CHECK(w.controller->covered("uid-stranger").milli_cpu == 0);
	CHECK(w.controller->covered(ours).milli_cpu == 2000);
	CHECK(w.fates(1, 2) == "ll");
}

TEST_CASE("shared reservation: small jobs have one pod on a node, as large as all of them")
{
	SharedWorld w;
	for (std::uint32_t id = 1; id <= 8; id++)
		w.arrive(id);
	w.run(Millis(100));
	CHECK(w.fates(1, 8) == "llllllll");
	CHECK(w.only_pod() == shared);
	CHECK(w.requested() == 8);
	CHECK(w.memory_mb() == 800);
	CHECK(w.created == 1);
	CHECK(w.resized == 1); // all that came meanwhile in one go
	CHECK(w.masked() == 0);
	w.run(Millis(3'000));
	CHECK(w.pods.at(shared).shared->jobs == "1,2,3,4,5,6,7,8");
}

TEST_CASE("shared reservation: a larger job, and one with devices, has a pod of its own")
{
	SharedWorld w;
	w.arrive(1, 2);
	w.arrive(2, 3);
	auto with_gres = std::make_shared<NativeJob>(*w.job(3, 1));
	with_gres->shares[0].gres = {{"gpu", "a100", 1, {0}}};
	w.controller->arrived(with_gres);
	w.run(Millis(100));
	CHECK(w.fates(1, 3) == "lll");
	CHECK(w.pods.size() == 3);
	CHECK(w.requested() == 2);
}

TEST_CASE("shared reservation: without the setting each job has a pod of its own")
{
	SharedWorld w([](ClusterSettings &s) { s.reservations.shared.max_cpus = 0; });
	w.arrive(1);
	w.arrive(2);
	w.run(Millis(100));
	CHECK(w.fates(1, 2) == "ll");
	CHECK_FALSE(w.pods.contains(shared));
	CHECK(w.pods.size() == 2);
}

TEST_CASE("shared reservation: a job is not launched before the kubelet has set aside what it has")
{
	SharedWorld w;
	w.arrive(1);
	w.run(Millis(100));
	w.kubelets = false;
	w.arrive(2);
	w.run(Millis(5'000));
	CHECK(w.fates(1, 2) == "lw");
	CHECK(w.requested() == 2);
	w.kubelets = true;
	w.kubelet_looks(shared);
	w.run();
	CHECK(w.fate(2) == "launched");
}

TEST_CASE("shared reservation: what was given back and is asked for again is not there before the kubelet says so")
{
	SharedWorld w;
	const auto first = w.arrive(1), second = w.arrive(2);
	w.run(Millis(100));
	w.kubelets = false; // its last word is that it has two CPUs for the pod
	w.end(second);
	w.run(Millis(3'000));
	REQUIRE(w.requested() == 1);
	w.arrive(3);
	w.run(Millis(3'000));
	REQUIRE(w.requested() == 2);
	CHECK(w.fate(3) == "waits");
	w.kubelets = true;
	w.kubelet_looks(shared);
	w.run();
	CHECK(w.fate(3) == "launched");
}

TEST_CASE("shared reservation: news of before the last change does not count")
{
	SharedWorld w;
	const auto first = w.arrive(1), second = w.arrive(2);
	w.run(Millis(100));
	const auto before = std::make_shared<ForeignPod>(w.pods.at(shared)); // two CPUs are asked for and set aside
	REQUIRE(before->shared->resize.allocated);
	w.kubelets = false;
	w.end(second);
	w.run(Millis(3'000));
	w.arrive(3);
	w.run(Millis(3'000));
	w.controller->changed(before); // late
	w.run(Millis(3'000));
	CHECK(w.requested() == 2);
	CHECK(w.fate(3) == "waits");
}

TEST_CASE("shared reservation: what is asked after old news is asked of the pod as it is now")
{
	SharedWorld w;
	w.arrive(1);
	w.run(Millis(3'000));
	const auto before = std::make_shared<ForeignPod>(w.pods.at(shared));
	w.change_pod(shared, [](ForeignPod &) {});
	w.run(Millis(3'000));
	w.controller->changed(before);
	w.arrive(2);
	w.run(Millis(100));
	CHECK(w.fate(2) == "launched");
}

TEST_CASE("shared reservation: after a restore of etcd its pod is believed again, though all versions are smaller")
{
	SharedWorld w;
	const auto first = w.arrive(1), second = w.arrive(2);
	w.run(Millis(5'000));
	w.restore_etcd();
	CHECK(w.masked() == 0);
	w.arrive(3);
	w.run(Millis(2'000));
	CHECK(w.fate(3) == "launched");
	w.end(first);
	w.run(Millis(2'000));
	CHECK(w.requested() == 2);
	CHECK(w.masked() == 0);
}

TEST_CASE("shared reservation: a list that is older than the answer to a change says nothing of what the kubelet has set aside")
{
	SharedWorld w;
	const auto first = w.arrive(1), second = w.arrive(2);
	w.run(Millis(5'000));
	const auto before = std::make_shared<ForeignPod>(w.pods.at(shared));
	w.kubelets = false;
	w.end(second);
	w.run(Millis(100));
	w.controller->replaced({before});
	w.arrive(3);
	w.run(Millis(5'000));
	CHECK(w.fate(3) == "waits");
}

TEST_CASE("shared reservation: an answer that comes after the watch's news of its kubelet takes nothing of that back")
{
	SharedWorld w;
	w.arrive(1);
	w.run(Millis(100));
	w.answers_last = true;
	w.arrive(2);
	w.run(Millis(1'000));
	CHECK(w.fate(2) == "launched");
	CHECK(w.masked() == 0);
	w.arrive(3); // asked of the pod as the watch has told
	w.run(Millis(1'000));
	CHECK(w.fate(3) == "launched");
}

TEST_CASE("shared reservation: who comes after one that has left does not wait until the kubelet has looked at that, too")
{
	SharedWorld w;
	const auto first = w.arrive(1), second = w.arrive(2);
	w.run(Millis(100));
	w.kubelets = false;
	w.end(second);
	w.run(Millis(100));
	REQUIRE(w.requested() == 1);
	w.arrive(3, 2);
	w.run(Millis(100));
	CHECK(w.requested() == 3); // the kubelet looks at both at once
}

TEST_CASE("shared reservation: jobs that come all the time keep nobody waiting")
{
	SharedWorld w;
	w.room = 100;
	for (std::uint32_t id = 1; id <= 50; id++) {
		w.arrive(id);
		w.run(Millis(100));
		if (id > 5)
			CHECK(w.fate(id - 5) == "launched");
	}
}

TEST_CASE("shared reservation: jobs that come all the time wait no longer where a kubelet is slow")
{
	SharedWorld w;
	w.room = 100;
	w.kubelet_takes = Millis(1'000);
	for (std::uint32_t id = 1; id <= 50; id++) {
		w.arrive(id);
		w.run(Millis(300));
		if (id > 8) // it may come just after the one before was asked for
			CHECK(w.fate(id - 8) == "launched");
	}
}

TEST_CASE("shared reservation: jobs that come together find out that nobody knows what the kubelet has seen")
{
	SharedWorld w;
	w.observes = false;
	w.arrive(1);
	w.arrive(2);
	w.run(Millis(5'000));
	CHECK(w.fates(1, 2) == "ll");
}

TEST_CASE("shared reservation: a job that waits for another node is not launched when the pod goes meanwhile")
{
	SharedWorld w;
	w.arrive(1);
	w.foreign("first", "default", 8, "n2");
	w.controller->arrived(w.job(2, 1, {"n1", "n2"}, false));
	w.run(Millis(1'000));
	REQUIRE(w.fate(2) == "waits");
	w.change_pod(shared, [](ForeignPod &p) { p.meta.deleting = true; });
	w.end_pod("first");
	w.run(Millis(11'000));
	CHECK(w.fate(2) == "waits");
	w.end_pod(shared);
	w.run(Millis(1'000));
	CHECK(w.fate(2) == "launched");
}

TEST_CASE("shared reservation: one job that leaves the gate lets in who came later")
{
	SharedWorld w;
	w.foreign("first", "default", 5);
	w.arrive(1);
	w.run(Millis(100));
	w.kubelets = false;
	const auto large = w.arrive(2, 2, false);
	w.run(Millis(1'000));
	w.arrive(3, 1);
	w.controller->ended(large->ref); // cancelled
	w.kubelets = true;
	w.kubelet_looks(shared);
	w.run(Millis(3'000));
	CHECK(w.fate(3) == "launched");
	CHECK(w.requested() == 2);
}

TEST_CASE("shared reservation: who waits has the room of a job that leaves while a change has failed")
{
	SharedWorld w;
	const auto first = w.arrive(1), second = w.arrive(2);
	w.run(Millis(5'000));
	w.controller->ended(second->ref);
	w.fail_resize = 429;
	w.arrive(3);
	w.run(Millis(100));
	REQUIRE(w.fate(3) == "waits"); // it is tried again after half a second
	w.controller->left(second->ref, {});
	w.run(Millis(100));
	CHECK(w.fate(3) == "launched");
}

TEST_CASE("shared reservation: a batch job for which there is no room goes back, and what was asked for it is taken back")
{
	SharedWorld w;
	w.foreign("first", "default", 6);
	w.arrive(1);
	w.arrive(2);
	w.run(Millis(100));
	CHECK(w.fates(1, 2) == "ll");
	w.arrive(3);
	w.run(Millis(100));
	CHECK(w.fate(3) == "back after 0 s");
	w.run(Millis(3'000));
	CHECK(w.requested() == 2);
	CHECK(w.masked() == 0);
	CHECK(w.fates(1, 2) == "ll");
}

TEST_CASE("shared reservation: of many for which there is not room enough some are launched, and the others go back")
{
	SharedWorld w;
	w.foreign("first", "default", 5);
	for (std::uint32_t id = 1; id <= 8; id++)
		w.arrive(id);
	w.run(Millis(15'000));
	const std::string fates = w.fates(1, 8);
	CHECK(fates.substr(0, 1) == "l");
	const auto launched = std::ranges::count(fates, 'l');
	CHECK(launched <= 3);
	CHECK(std::ranges::count(fates, 'w') == 0);
	CHECK(w.requested() == launched);
}

TEST_CASE("shared reservation: srun's job tries until there is room, or gateTimeout is over")
{
	SharedWorld w;
	w.foreign("first", "default", 7);
	w.arrive(1);
	w.run(Millis(100));
	w.arrive(2, 1, false);
	w.run(Millis(8'000));
	CHECK(w.fates(1, 2) == "lw");
	SECTION("room")
	{
		w.end_pod("first");
		w.run(Millis(9'000));
		CHECK(w.fate(2) == "launched");
		CHECK(w.requested() == 2);
	}
	SECTION("no room")
	{
		w.run(Millis(13'000));
		CHECK(w.fate(2) == "back after 0 s");
		CHECK_FALSE(w.answers.at(2).open);
		CHECK(w.answers.at(2).why.find("the kubelet of node n1 refuses room for the job") != std::string::npos);
		w.run(Millis(3'000));
		CHECK(w.requested() == 1);
	}
}

TEST_CASE("shared reservation: a node whose kubelet has no room for the first one")
{
	SharedWorld w;
	w.foreign("first", "default", 8);
	w.arrive(1);
	w.run(Millis(5'000));
	CHECK(w.fate(1) == "back after 0 s");
	CHECK(w.only_pod() == "first");
}

TEST_CASE("shared reservation: what a job has had is masked until its processes are gone and the kubelet has it back")
{
	SharedWorld w;
	const auto first = w.arrive(1), second = w.arrive(2, 2);
	w.run(Millis(100));
	CHECK(w.masked() == 0);
	w.controller->ended(second->ref);
	CHECK(w.masked() == 2);
	w.run(Millis(5'000));
	CHECK(w.masked() == 2);
	CHECK(w.requested() == 3);
	w.kubelets = false;
	w.controller->left(second->ref, {});
	w.run(Millis(5'000));
	CHECK(w.requested() == 1);
	CHECK(w.masked() == 2); // the kubelet has not said anything
	w.kubelets = true;
	w.kubelet_looks(shared);
	w.run();
	CHECK(w.masked() == 0);
	CHECK(w.only_pod() == shared);
}

TEST_CASE("shared reservation: a job that comes while another ends takes nothing of its mask")
{
	SharedWorld w;
	const auto first = w.arrive(1, 2);
	w.run(Millis(100));
	w.controller->ended(first->ref);
	w.arrive(2, 2);
	CHECK(w.masked() == 2);
	CHECK(w.masked_mb() == 100);
	w.run(Millis(100));
	CHECK(w.fate(2) == "launched");
	CHECK(w.requested() == 4);
	CHECK(w.masked() == 2);
}

TEST_CASE("shared reservation: what ends is masked beside what has ended and is not given back")
{
	SharedWorld w;
	const auto first = w.arrive(1), second = w.arrive(2, 2), third = w.arrive(3, 2);
	w.run(Millis(100));
	w.kubelets = false;
	w.end(third);
	w.controller->ended(second->ref);
	w.run(Millis(1'000));
	CHECK(w.masked() == 4);
	CHECK(w.masked_mb() == 200);
}

TEST_CASE("shared reservation: it holds nothing after its last job, serves the next one, and goes when none comes")
{
	SharedWorld w;
	const auto first = w.arrive(1, 2);
	w.run(Millis(100));
	w.end(first);
	w.run(Millis(3'000));
	REQUIRE(w.pods.contains(shared));
	CHECK(w.requested() == 0);
	CHECK(w.pods.at(shared).milli_cpu == 0);
	CHECK(w.controller->covered(w.pods.at(shared).meta.uid).memory_mb == 1); // the byte that it has to have
	const auto second = w.arrive(2, 2);
	w.run(Millis(100));
	CHECK(w.fate(2) == "launched");
	CHECK(w.created == 1);
	w.end(second);
	w.run(Millis(15'000));
	CHECK(w.pods.empty());
}

TEST_CASE("shared reservation: who comes while the pod is being deleted waits for another one")
{
	SharedWorld w;
	w.leave_to_nobody();
	w.delete_takes = Millis(5'000);
	w.controller->jobs_replaced({}); // it has ended meanwhile
	w.run(Millis(100));
	REQUIRE(w.pods.contains(shared)); // the DELETE has been sent, and has not arrived
	w.arrive(2);
	w.run(Millis(4'000));
	CHECK(w.fate(2) == "waits");
	w.run(Millis(2'000));
	CHECK(w.fate(2) == "launched");
	CHECK(w.created == 2);
}

TEST_CASE("shared reservation: a DELETE that may yet arrive is made again before anybody is let in, one that was refused is not")
{
	SharedWorld w;
	w.leave_to_nobody();
	const auto [status, created] = GENERATE(std::pair{500, 2}, std::pair{504, 2}, std::pair{403, 1}, std::pair{429, 1});
	w.fail_delete = status;
	w.controller->jobs_replaced({});
	w.run(Millis(100));
	REQUIRE(w.fail_delete == 0);
	w.arrive(2);
	w.run(Millis(100));
	CHECK(w.fate(2) == (created == 1 ? "launched" : "waits"));
	if (GENERATE(false, true))
		w.fail_delete = 403; // that says nothing of the first one
	w.run(Millis(10'000));
	CHECK(w.fate(2) == "launched");
	CHECK(w.created == created);
}

TEST_CASE("shared reservation: after a restart of slurmctld pod and jobs find each other, whoever is told first")
{
	SharedWorld w;
	const auto runs = w.arrive(1, 2), gone = w.arrive(2, 1), waits = w.job(3, 1);
	w.run(Millis(100));
	const std::string uid = w.pods.at(shared).meta.uid;
	const bool pods_first = GENERATE(true, false);
	w.answers.clear();
	w.restart(pods_first);
	w.controller->arrived(waits);
	w.run(Millis(1'000));
	CHECK(w.fate(3) == "waits");
	CHECK(w.requested() == 3); // nothing is done before the jobs are known
	w.controller->jobs_replaced({runs});
	if (!pods_first)
		w.list();
	w.run(Millis(1'000));
	CHECK(w.fate(3) == "launched");
	CHECK(w.pods.at(shared).meta.uid == uid);
	CHECK(w.requested() == 3); // 2 and 1
	CHECK(w.masked() == 0);
	w.run(Millis(3'000));
	CHECK(w.pods.at(shared).shared->jobs == "1,3");
}

TEST_CASE("shared reservation: after a restart it is not made smaller until all who run are known")
{
	SharedWorld w;
	const auto first = w.arrive(1, 2), second = w.arrive(2, 1);
	w.run(Millis(100));
	REQUIRE(w.requested() == 3);
	const int resized = w.resized;
	const bool pods_first = GENERATE(true, false);
	w.restart(pods_first);
	w.controller->jobs_replaced({first, second});
	if (!pods_first)
		w.list();
	w.run(Millis(5'000));
	CHECK(w.requested() == 3);
	CHECK(w.resized == resized);
}

// slurmctld was killed before it had saved that the second job is launched, and the kubelet, as it says
// then, has room for the first one only.
static NativeJobPtr forget_launch_of_second(SharedWorld &w, bool requeues)
{
	w.arrive(1);
	const auto second = w.arrive(2, 1, requeues);
	w.run(Millis(100));
	REQUIRE(w.fates(1, 2) == "ll");
	w.answers.clear();
	w.change_pod(shared, [](ForeignPod &p) {
		kube::Resize now = p.shared->resize;
		now.pending = kube::Resize::Pending::deferred;
		now.allocated = kube::Resources{1000, 100 << 20, {}};
		p.shared = std::make_shared<SharedPod>(SharedPod{now, p.shared->jobs});
	});
	w.restart();
	w.arrive(2, 1, requeues);
	w.controller->jobs_replaced({w.job(1, 1), second});
	return second;
}

TEST_CASE("shared reservation: what a job has that a killed slurmctld may have launched is not given back before Slurm has done with it")
{
	SharedWorld w;
	const auto second = forget_launch_of_second(w, true);
	const int before = w.resized;
	w.change_pod(shared, [](ForeignPod &) {});
	w.run(Millis(3'000));
	CHECK(w.fate(2) == "back after 0 s");
	CHECK(w.watched == std::vector{second->ref});
	CHECK(w.requested() == 2);
	CHECK(w.resized == before);
	w.controller->left(second->ref, {});
	w.run(Millis(3'000));
	CHECK(w.requested() == 1);
}

TEST_CASE("shared reservation: what a job has that a killed slurmctld may have launched is requested while the kubelet puts it off")
{
	SharedWorld w;
	forget_launch_of_second(w, false);
	const int before = w.resized;
	w.change_pod(shared, [](ForeignPod &) {});
	w.run(Millis(100));
	CHECK(w.fate(2) == "waits");
	CHECK(w.requested() == 2);
	CHECK(w.resized == before);
}

TEST_CASE("shared reservation: nobody gets the room of a job that a killed slurmctld may have launched, whoever waits first")
{
	SharedWorld w;
	w.arrive(1);
	const auto second = w.arrive(2, 1, false);
	w.run(Millis(100));
	REQUIRE(w.fates(1, 2) == "ll");
	w.answers.clear();
	w.foreign("first", "default", 6); // room for two is all there is
	w.restart();
	w.controller->jobs_replaced({w.job(1, 1), second});
	w.arrive(3, 1, false);
	w.arrive(2, 1, false);
	w.run(Millis(100));
	CHECK(w.fates(2, 3) == "lw");
}

TEST_CASE("shared reservation: a pod that others make in the name of a job's own takes nothing of its part away")
{
	SharedWorld w;
	const auto job = w.arrive(1);
	w.run(Millis(100));
	REQUIRE(w.fate(1) == "launched");
	w.foreign("slurm-1-3e9-n1", "slurm-k8s-jobs", GENERATE(1, 3, 8)); // 8: refused
	w.run(Millis(5'000));
	CHECK(w.requested() == 1);
	CHECK(w.masked() == 0);
	w.end(job);
	w.run(Millis(15'000));
	CHECK(w.pods.empty());
}

TEST_CASE("shared reservation: one that stands for nobody after a restart goes")
{
	SharedWorld w;
	w.arrive(1, 2);
	w.run(Millis(100));
	if (GENERATE(true, false))
		w.settings.reservations.shared.max_cpus = 0;
	w.restart();
	w.controller->jobs_replaced({});
	w.run(Millis(15'000));
	CHECK(w.pods.empty());
}

TEST_CASE("shared reservation: jobs that had pods of their own before the settings changed keep them")
{
	SharedWorld w([](ClusterSettings &s) { s.reservations.shared.max_cpus = 0; });
	const auto before = w.arrive(1);
	w.run(Millis(100));
	REQUIRE(w.only_pod() == "slurm-1-3e9-n1");
	w.settings.reservations.shared.max_cpus = 2;
	const bool pods_first = GENERATE(true, false);
	w.restart(pods_first);
	w.controller->jobs_replaced({before});
	if (!pods_first)
		w.list();
	w.run(Millis(5'000));
	CHECK(w.only_pod() == "slurm-1-3e9-n1");
	w.arrive(2);
	w.run(Millis(100));
	CHECK(w.fate(2) == "launched");
	CHECK(w.pods.contains(shared));
	w.end(before);
	w.run(Millis(1'000));
	CHECK(w.only_pod() == shared);
}

TEST_CASE("shared reservation: a request that fails, collides or whose answer is lost is made again")
{
	SharedWorld w;
	w.arrive(1);
	w.run(Millis(100));
	w.fail_resize = GENERATE(1, 403, 409, 500);
	w.arrive(2);
	w.run(Millis(10'000));
	CHECK(w.fate(2) == "launched");
	CHECK(w.requested() == 2);
	CHECK(w.created == 1);
}

TEST_CASE("shared reservation: nobody is let out into room that a change without an answer may have taken back")
{
	SharedWorld w;
	w.arrive(1);
	const auto second = w.arrive(2);
	w.run(Millis(3'000));
	w.watch_delivers = false; // it is late
	w.fail_resize = 1;
	w.end(second);
	w.run(Millis(100));
	REQUIRE(w.requested() == 1);
	w.arrive(3); // as much as was known to be requested before
	w.fail_resize = GENERATE(0, 429, 500);
	w.run(Millis(5'000));
	CHECK(w.fate(3) == "waits");
	w.watch_catches_up();
	w.run(Millis(5'000));
	CHECK(w.fate(3) == "launched");
	CHECK(w.requested() == 2);
}

TEST_CASE("shared reservation: no change is asked for before the watch has told of the pod")
{
	SharedWorld w;
	w.watch_delivers = false; // it is late
	const auto first = w.arrive(1);
	w.run(Millis(3'000));
	const auto as_made = std::make_shared<ForeignPod>(w.pods.at(shared));
	REQUIRE(as_made->admitted);
	w.fail_resize = 1;
	w.end(first);
	w.run(Millis(100));
	w.arrive(2);
	w.controller->changed(as_made);
	w.run(Millis(100));
	CHECK(w.fate(2) == "launched");
	CHECK(w.requested() == 1); // not what a change that was asked for before takes back
	w.fail_resize = 0;
	w.watch_catches_up();
	w.arrive(3);
	w.run(Millis(3'000));
	CHECK(w.fate(3) == "launched");
	CHECK(w.requested() == 2);
}

TEST_CASE("shared reservation: a change without an answer that never arrived holds nobody up")
{
	SharedWorld w;
	w.arrive(1);
	const auto second = w.arrive(2);
	w.run(Millis(3'000));
	w.fail_resize = 500;
	w.end(second);
	w.run(Millis(100));
	REQUIRE(w.requested() == 2);
	w.arrive(3);
	CHECK(w.fate(3) == "waits");
	w.run(Millis(3'000));
	CHECK(w.fate(3) == "launched");
}

TEST_CASE("shared reservation: a change that collides with its kubelet's is made again after half a second")
{
	SharedWorld w;
	w.arrive(1);
	w.run(Millis(100));
	w.fail_resize = 409;
	w.arrive(2);
	w.run(Millis(400));
	CHECK(w.fate(2) == "waits"); // for what the watch tells
	w.run(Millis(600));
	CHECK(w.fate(2) == "launched");
}

TEST_CASE("shared reservation: where pods cannot be resized each job has a pod of its own")
{
	SharedWorld w;
	SECTION("the API server does not know of it")
	{
		w.can_resize = ReservationPort::Resizes::not_server;
	}
	SECTION("the node's kubelet does not")
	{
		w.can_resize = ReservationPort::Resizes::not_node;
	}
	SECTION("nobody knows what the kubelet has seen")
	{
		w.observes = false;
	}
	const auto first = w.arrive(1);
	w.run(Millis(100));
	w.arrive(2);
	w.arrive(3);
	w.run(Millis(3'000));
	CHECK(w.fates(1, 3) == "lll");
	CHECK(w.pods.contains("slurm-2-3ea-n1"));
	w.end(first);
	w.run(Millis(1'000));
	CHECK_FALSE(w.pods.contains(shared));
}

TEST_CASE("shared reservation: one that is taken away is made again for all that run")
{
	SharedWorld w;
	w.arrive(1);
	w.arrive(2, 2);
	w.run(Millis(100));
	w.end_pod(shared);
	w.run(Millis(1'000));
	REQUIRE(w.only_pod() == shared);
	CHECK(w.requested() == 3);
	CHECK(w.created == 2);
	CHECK(w.ended.empty());
}

TEST_CASE("shared reservation: by the settings all its jobs end when somebody takes it")
{
	SharedWorld w([](ClusterSettings &s) { s.reservations.eviction = ReservationSettings::OnEviction::requeue; });
	w.arrive(1);
	w.arrive(2, 2);
	w.run(Millis(100));
	w.change_pod(shared, [](ForeignPod &p) {
		p.over = true;
		p.admitted = false;
		p.phase = "Failed";
		p.reason = "Evicted";
	});
	w.run(Millis(1'000));
	CHECK(w.ended == std::vector<std::string>{"1 requeue: its reservation pod on node n1 was evicted by its kubelet",
						  "2 requeue: its reservation pod on node n1 was evicted by its kubelet"});
}

TEST_CASE("shared reservation: a deletion that a former slurmctld has asked for may come some seconds after the start of this one")
{
	const auto after = GENERATE(Millis(2'000), Millis(40'000));
	SharedWorld w([](ClusterSettings &s) { s.reservations.eviction = ReservationSettings::OnEviction::requeue; });
	const auto runs = w.arrive(1);
	w.run(Millis(100));
	w.restart();
	w.controller->jobs_replaced({runs});
	w.run(after);
	w.change_pod(shared, [](ForeignPod &p) { p.meta.deleting = true; });
	w.run();
	w.end_pod(shared);
	w.run(Millis(2'000));
	CHECK(w.ended.size() == (after > Millis(30'000) ? 1 : 0));
	CHECK(w.pods.size() == (after > Millis(30'000) ? 0 : 1)); // it is made again for who runs on
}

TEST_CASE("shared reservation: a pod that others make in its name is neither believed nor deleted")
{
	SharedWorld w;
	w.foreign(shared, "slurm-k8s-jobs", 1);
	w.arrive(1);
	w.run(Millis(25'000));
	CHECK(w.fate(1) == "back after 0 s");
	CHECK(w.controller->covered(w.pods.at(shared).meta.uid).milli_cpu == 0);
	CHECK(w.only_pod() == shared);
}

TEST_CASE("shared reservation: the list of its jobs has an end")
{
	CHECK(job_list({3, 1, 2}) == "1,2,3");
	CHECK(job_list({}).empty());
	std::vector<std::uint32_t> many;
	for (std::uint32_t id = 1; id <= 100'000; id++)
		many.push_back(id);
	const std::string text = job_list(many);
	CHECK(text.size() < 4200);
	CHECK(text.ends_with(" more"));
}
