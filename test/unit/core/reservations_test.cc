// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/unit/core/reservation_world.h"

#include "lib/core/gate.h"
#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;

TEST_CASE("reservations: a job is launched when each of its shared nodes has admitted what it holds there")
{
	ReservationWorld w;
	w.controller->arrived(w.job(7, 3, {"n1", "n2", "alone"}));
	CHECK(w.fate(7) == "waits");
	w.run();
	CHECK(w.fate(7) == "launched");
	REQUIRE(w.pods.size() == 2);
	CHECK(w.pods.at("slurm-7-3ef-n2").milli_cpu == 3000);
	CHECK(w.pods.at("slurm-7-3ef-n2").memory_bytes == 100 << 20);
	CHECK(w.controller->covers(w.pods.at("slurm-7-3ef-n1").meta.uid));
}

TEST_CASE("reservations: a job without a shared node is launched at once")
{
	ReservationWorld w;
	w.controller->arrived(w.job(7, 3, {"alone"}));
	CHECK(w.fate(7) == "launched");
	CHECK(w.pods.empty());
}

TEST_CASE("reservations: a job has a pod on those of its nodes whose group is mixed")
{
	ReservationWorld w;
	w.settings.nodes.sharing = Sharing::dedicated;
	w.settings.nodes.groups = {{"pool=gpu", Sharing::mixed}};
	w.restart();
	w.label("n2", "pool", "gpu");
	w.controller->arrived(w.job(7, 3, {"n1", "n2"}));
	w.run();
	CHECK(w.fate(7) == "launched");
	REQUIRE(w.pods.size() == 1);
	CHECK(w.pods.begin()->second.node_name == "n2");
	w.label("n1", "pool", "gpu");
	w.run(Millis(1'000));
	CHECK(w.pods.size() == 2); // the job goes on, and the kubelet knows of it now
	w.label("n2", "pool", "cpu");
	w.run(Millis(1'000));
	CHECK(w.pods.size() == 1);
}

TEST_CASE("reservations: a pod in which tasks run stays where its node's group is not mixed any more")
{
	ReservationWorld w;
	w.settings.nodes.sharing = GENERATE(Sharing::none, Sharing::dedicated);
	w.settings.nodes.groups = {{"pool=gpu", Sharing::mixed}};
	w.restart();
	w.label("n1", "pool", "gpu");
	w.label("n2", "pool", "gpu");
	auto wanted = std::make_shared<NativeJob>(*w.job(7, 3, {"n1", "n2"}));
	wanted->image = "app";
	const NativeJobPtr job = wanted;
	w.controller->jobs_replaced({});
	w.controller->arrived(job);
	w.run();
	for (const auto &name : {"slurm-7-3ef-n1", "slurm-7-3ef-n2"})
		w.change_pod(name, [](ForeignPod &p) { p.container = std::make_shared<JobContainerState>(JobContainerState{.runs = true, .trouble = {}}); });
	w.run();
	REQUIRE(w.fate(7) == "launched");
	w.label("n2", "pool", "cpu");
	if (GENERATE(false, true)) {
		w.restart();
		w.controller->jobs_replaced({job});
	}
	w.run(Millis(5'000));
	CHECK(w.pods.contains("slurm-7-3ef-n2"));
	w.controller->ended(job->ref);
	w.controller->left(job->ref, {});
	w.run(Millis(5'000));
	CHECK(w.pods.empty());
}

TEST_CASE("reservations: pods of another Slurm that has the same namespace are left alone")
{
	ReservationWorld w([](ClusterSettings &s) { s.reservations.shared.max_cpus = 2; });
	w.foreign("slurm-9-3f1-other", w.settings.reservations.ns, 1, "other");
	w.foreign("slurm-shared-other", w.settings.reservations.ns, 1, "other");
	auto &shared = w.pods.at("slurm-shared-other");
	shared.shared = std::make_shared<SharedPod>();
	w.restart();
	w.controller->jobs_replaced({});
	w.run(Millis(20'000));
	CHECK(w.pods.size() == 2);
}

TEST_CASE("reservations: a batch job that a kubelet refuses goes back at once, then with growing delays")
{
	ReservationWorld w;
	w.foreign("first", "default", 6);
	std::string fates;
	for (std::uint32_t submitted = 0; submitted < 4; submitted++) {
		auto job = std::make_shared<NativeJob>(*w.job(7, 3));
		job->ref.submit_time += submitted;
		w.answers.clear();
		w.controller->arrived(job);
		w.run(Millis(1'000));
		fates += w.fate(7) + ", ";
		CHECK(w.only_pod() == "first"); // nothing of it is left
	}
	CHECK(fates == "back after 0 s, back after 1 s, back after 2 s, back after 4 s, ");
	w.end_pod("first");
	auto job = std::make_shared<NativeJob>(*w.job(7, 3));
	job->ref.submit_time += 9;
	w.answers.clear();
	w.controller->arrived(job);
	w.run();
	CHECK(w.fate(7) == "launched");
}

TEST_CASE("reservations: jobs that are refused together again and again do not come back together for ever")
{
	ReservationWorld w;
	w.foreign("first", "default", 6);
	for (std::uint32_t submitted = 0; submitted < 12; submitted++) {
		w.answers.clear();
		for (std::uint32_t id = 6; id < 10; id++) {
			auto job = std::make_shared<NativeJob>(*w.job(id, 3));
			job->ref.submit_time += 10 * submitted;
			w.controller->arrived(job);
		}
		w.run(Millis(1'000));
	}
	std::set<std::string> fates;
	for (std::uint32_t id = 6; id < 10; id++)
		fates.insert(w.fate(id));
	CHECK(fates == std::set<std::string>{"back after 120 s", "back after 135 s", "back after 150 s", "back after 165 s"});
}

TEST_CASE("reservations: a job that is refused and comes again within the second of its submission gets pods of its own")
{
	ReservationWorld w;
	w.controller->jobs_replaced({});
	w.foreign("first", "default", 6);
	w.delete_takes = Millis(3'000);
	w.controller->arrived(w.job(7, 3));
	w.run();
	REQUIRE(w.fate(7) == "back after 0 s");
	w.answers.clear();
	w.controller->ended(w.job(7, 3)->ref);
	w.end_pod("first");
	w.controller->arrived(w.job(7, 3, {"n1", "n2"}));
	w.run(Millis(2'000));
	CHECK(w.fate(7) == "waits");
	SECTION("when those of its former start have gone")
	{
		w.run(Millis(2'000));
		CHECK(w.fate(7) == "launched");
		CHECK(w.created == 3);
		CHECK(w.pods.size() == 2);
	}
	SECTION("and is told that they do not go")
	{
		w.delete_takes = Millis(60'000);
		w.controller->ended(w.job(7, 3)->ref);
		w.run(Millis(2'000));
		w.answers.clear();
		w.foreign("second", "default", 6);
		w.controller->arrived(w.job(7, 3));
		w.run();
		REQUIRE(w.fate(7) == "back after 1 s");
		w.answers.clear();
		w.controller->ended(w.job(7, 3)->ref);
		w.controller->arrived(w.job(7, 3));
		w.run(Millis(25'000));
		CHECK(w.fate(7) == "back after 0 s");
		CHECK(w.answers.at(7).why.find("the reservation pod of its former start has not gone") != std::string::npos);
	}
	SECTION("unless it ends before")
	{
		w.controller->ended(w.job(7, 3)->ref);
		w.run(Millis(5'000));
		CHECK(w.fate(7) == "waits");
		CHECK(w.pods.empty());
		CHECK(w.created == 1);
	}
}

TEST_CASE("reservations: srun's job tries until there is room, or gateTimeout is over")
{
	ReservationWorld w;
	w.foreign("first", "default", 6);
	w.controller->arrived(w.job(7, 3, {"n1"}, false));
	w.run(Millis(10'000));
	CHECK(w.fate(7) == "waits");
	SECTION("room")
	{
		w.end_pod("first");
		w.run(Millis(9'000));
		CHECK(w.fate(7) == "launched");
	}
	SECTION("no room")
	{
		w.run(Millis(11'000));
		REQUIRE(w.fate(7) != "waits");
		CHECK_FALSE(w.answers.at(7).open);
		CHECK(w.answers.at(7).why == "the kubelet of node n1 refuses the job's reservation pod (OutOfcpu)");
		w.run(Millis(5'000));
		CHECK(w.only_pod() == "first");
		CHECK(w.created < 10);
	}
}

TEST_CASE("reservations: gateTimeout begins when the job's nodes are awake")
{
	const bool requeues = GENERATE(true, false);
	CAPTURE(requeues);
	ReservationWorld w; // gateTimeout: 20 s
	w.kubelets = false;
	w.set_asleep("n2", true);
	w.controller->arrived(w.job(7, 3, {"n1", "n2"}, requeues));
	w.run();
	REQUIRE(w.pods.size() == 2);
	for (const auto &[name, pod] : w.pods)
		if (pod.node_name == "n1")
			w.change_pod(name, [](ForeignPod &p) { p.admitted = true; });
	SECTION("it boots for longer")
	{
		w.run(Millis(300'000));
		CHECK(w.fate(7) == "waits");
		w.set_asleep("n2", false);
		w.run(Millis(19'000));
		CHECK(w.fate(7) == "waits");
		SECTION("and admits the pod")
		{
			for (const auto &[name, pod] : w.pods)
				w.change_pod(name, [](ForeignPod &p) { p.admitted = true; });
			w.run();
			CHECK(w.fate(7) == "launched");
		}
		SECTION("and its kubelet is not up")
		{
			w.run(Millis(22'000));
			REQUIRE(w.fate(7) != "waits");
			CHECK(w.answers.at(7).why.find("the kubelet of node n2 has not said that there is room") != std::string::npos);
		}
	}
	SECTION("it boots in less")
	{
		w.run(Millis(10'000));
		w.set_asleep("n2", false);
		w.run(Millis(19'000));
		CHECK(w.fate(7) == "waits");
		w.run(Millis(12'000));
		CHECK(w.fate(7) != "waits");
	}
	SECTION("another node sleeps")
	{
		w.set_asleep("n2", false);
		w.set_asleep("alone", true);
		w.run(Millis(41'000)); // it was asleep when the job came
		CHECK(w.fate(7) != "waits");
	}
}

TEST_CASE("reservations: a job is not launched while no kubelet has said anything, and does not wait for ever")
{
	ReservationWorld w;
	w.controller->jobs_replaced({});
	w.kubelets = false;
	w.controller->arrived(w.job(7, 3));
	w.run(Millis(19'000));
	CHECK(w.fate(7) == "waits");
	w.run(Millis(2'000));
	CHECK(w.fate(7) == "back after 0 s");
	CHECK(w.pods.empty());
}

TEST_CASE("reservations: without Kubernetes all wait that may be on a shared node")
{
	const bool named = GENERATE(true, false);
	ReservationWorld w([&](ClusterSettings &s) {
		if (named)
			s.nodes.names = {"n1"};
	});
	w.restart(false);
	w.controller->arrived(w.job(7, 3));
	w.controller->arrived(w.job(8, 3, {"alone"}));
	w.run(Millis(5'000));
	CHECK(w.fate(7) == "waits");
	CHECK(w.fate(8) == (named ? "launched" : "waits"));
	w.list();
	w.run();
	CHECK(w.fate(7) == "launched");
	CHECK(w.fate(8) == "launched");
}

TEST_CASE("reservations: a job whose end in the gate was forgotten is not launched on cores that a pod has got since")
{
	ReservationWorld w;
	w.taken_by = [](const NativeShare &s) {
		return s.cores == std::vector<std::uint16_t>{1, 2} ? std::optional(PodKey{"c", "a", "b", "uid"}) : std::nullopt;
	};
	auto taken = std::make_shared<NativeJob>(*w.job(7, 2, {"alone"})), free = std::make_shared<NativeJob>(*w.job(8, 2, {"alone"}));
	auto mixed = std::make_shared<NativeJob>(*w.job(9, 2));
	taken->shares[0].cores = mixed->shares[0].cores = {1, 2};
	free->shares[0].cores = {3};
	for (const auto &job : {taken, free, mixed})
		w.controller->arrived(job);
	w.run();
	CHECK(w.fate(7) == "back after 0 s");
	CHECK(w.answers.at(7).why.find("node alone: pod a/b holds its cores or devices") != std::string::npos);
	CHECK(w.fate(8) == "launched");
	CHECK(w.fate(9) == "launched"); // its kubelet has said that there is room
}

TEST_CASE("reservations: the pod stays until the job's last process is gone, and covers nothing from its end on")
{
	ReservationWorld w;
	const auto job = w.job(7, 3, {"n1", "n2"});
	w.controller->arrived(job);
	w.run();
	const std::string uid = w.pods.at("slurm-7-3ef-n1").meta.uid;
	w.controller->ended(job->ref);
	w.run();
	CHECK(w.pods.size() == 2);
	CHECK_FALSE(w.controller->covers(uid));
	CHECK(w.watched == std::vector{job->ref});
	w.controller->left(job->ref, {"n1"});
	w.run();
	CHECK(w.only_pod() == "slurm-7-3ef-n1");
	w.controller->left(job->ref, {});
	w.run();
	CHECK(w.pods.empty());
}

TEST_CASE("reservations: a job that gives a node back while it runs has no pod there any more, and keeps the others")
{
	ReservationWorld w;
	const auto job = w.job(7, 3, {"n1", "n2"});
	w.controller->arrived(job);
	w.run();
	w.controller->left(job->ref, {"n1", "n2"}); // it has all of them
	w.run();
	REQUIRE(w.pods.size() == 2);
	const std::string given_back = w.pods.at("slurm-7-3ef-n2").meta.uid;
	w.controller->left(job->ref, {"n1"});
	CHECK_FALSE(w.controller->covers(given_back)); // masked until it has gone
	w.run();
	CHECK(w.only_pod() == "slurm-7-3ef-n1");
	CHECK(w.controller->covers(w.pods.at("slurm-7-3ef-n1").meta.uid));
	w.controller->nodes_changed();
	w.run(Millis(60'000));
	CHECK(w.only_pod() == "slurm-7-3ef-n1");

	w.controller->ended(job->ref);
	w.run();
	CHECK(w.only_pod() == "slurm-7-3ef-n1"); // its processes are there yet
	w.controller->left(job->ref, {});
	w.run();
	CHECK(w.pods.empty());
}

TEST_CASE("reservations: a job that gives a node back while it is in the gate waits for the others only")
{
	ReservationWorld w;
	w.kubelets = false;
	const auto job = w.job(7, 3, {"n1", "n2"});
	w.controller->arrived(job);
	w.run();
	REQUIRE(w.pods.size() == 2);
	CHECK(w.fate(7) == "waits");
	w.controller->left(job->ref, {"n1"});
	w.run();
	CHECK(w.only_pod() == "slurm-7-3ef-n1");
	w.change_pod("slurm-7-3ef-n1", [](ForeignPod &p) { p.admitted = true; });
	w.run();
	CHECK(w.fate(7) == "launched");
	CHECK(w.only_pod() == "slurm-7-3ef-n1");
}

TEST_CASE("reservations: a pod goes whose job has left its node before anything is known of nodes and pods, after a restart")
{
	ReservationWorld w;
	w.controller->arrived(w.job(7, 3, {"n1", "n2"}));
	w.run();
	REQUIRE(w.pods.size() == 2);
	auto ends = std::make_shared<NativeJob>(*w.job(7, 3, {"n1", "n2"}));
	ends->ending = true;
	w.restart(false);
	w.controller->jobs_replaced({ends});
	w.controller->left(ends->ref, {"n2"});
	w.list();
	w.run(Millis(1'000));
	CHECK(w.only_pod() == "slurm-7-3ef-n2"); // its processes are there yet
	w.controller->left(ends->ref, {});
	w.run(Millis(1'000));
	CHECK(w.pods.empty());
}

TEST_CASE("reservations: a pod stays whose job begins to end before anything is known of nodes and pods, after a restart")
{
	ReservationWorld w;
	const auto job = w.job(7, 3, {"n1", "n2"});
	w.controller->arrived(job);
	w.run();
	REQUIRE(w.pods.size() == 2);
	w.restart(false);
	w.controller->jobs_replaced({job}); // it runs
	w.controller->ended(job->ref);
	SECTION("and none of its nodes is left")
	{
		w.list();
		w.run(Millis(1'000));
		CHECK(w.pods.size() == 2);
	}
	SECTION("and one of them is")
	{
		w.controller->left(job->ref, {"n2"});
		w.list();
		w.run(Millis(1'000));
		CHECK(w.only_pod() == "slurm-7-3ef-n2");
	}
	w.controller->left(job->ref, {});
	w.run(Millis(1'000));
	CHECK(w.pods.empty());
}

TEST_CASE("reservations: a job that ends in the gate leaves no pod")
{
	ReservationWorld w;
	w.controller->jobs_replaced({});
	w.kubelets = false;
	const auto job = w.job(7, 3);
	w.controller->arrived(job);
	w.run();
	w.controller->ended(job->ref);
	w.run(Millis(30'000));
	CHECK(w.pods.empty());
	CHECK(w.answers.empty()); // the gate itself has let it out
}

TEST_CASE("reservations: a pod that is taken away is made again while its job runs")
{
	ReservationWorld w;
	w.controller->arrived(w.job(7, 3));
	w.run();
	w.end_pod("slurm-7-3ef-n1");
	w.run();
	CHECK(w.only_pod() == "slurm-7-3ef-n1");
	CHECK(w.created == 2);
}

TEST_CASE("reservations: after a restart pods and jobs find each other, whoever is told first")
{
	ReservationWorld w;
	const auto runs = w.job(7, 2), gone = w.job(8, 2), without = w.job(9, 1);
	auto ends = std::make_shared<NativeJob>(*w.job(10, 1));
	for (const auto &job : {runs, gone, NativeJobPtr(ends)})
		w.controller->arrived(job);
	w.run();
	REQUIRE(w.pods.size() == 3);
	const std::string uid = w.pods.at("slurm-7-3ef-n1").meta.uid;
	ends->ending = true;
	const std::vector<NativeJobPtr> jobs{runs, without, ends};
	if (GENERATE(true, false)) {
		w.restart();
		w.controller->jobs_replaced(jobs);
	} else {
		w.restart(false);
		w.controller->jobs_replaced(jobs);
		w.list();
	}
	w.run(Millis(1'000));
	CHECK(w.pods.contains("slurm-9-3f1-n1"));
	CHECK_FALSE(w.pods.contains("slurm-8-3f0-n1"));
	CHECK(w.pods.contains("slurm-10-3f2-n1"));
	CHECK(w.pods.at("slurm-7-3ef-n1").meta.uid == uid);
	CHECK(w.controller->covers(uid));
	CHECK_FALSE(w.controller->covers(w.pods.at("slurm-10-3f2-n1").meta.uid));
	w.controller->left(ends->ref, {});
	w.run();
	CHECK_FALSE(w.pods.contains("slurm-10-3f2-n1"));
}

TEST_CASE("reservations: a pod that stands for no job goes, however often its deletion is refused at first")
{
	ReservationWorld w;
	w.controller->arrived(w.job(8, 2));
	w.run();
	REQUIRE(w.pods.size() == 1);
	w.fail_delete = GENERATE(409, 403, 503);
	w.restart();
	w.controller->jobs_replaced({});
	w.run(Millis(1'000));
	CHECK(w.pods.size() == 1);
	w.run(Millis(20'000));
	CHECK(w.pods.empty());
}

TEST_CASE("reservations: where no node is mixed any more what there was goes at once, on our nodes, and the jobs go on")
{
	ReservationWorld w([](ClusterSettings &s) { s.reservations.shared.max_cpus = 2; });
	w.controller->jobs_replaced({});
	w.controller->arrived(w.job(7, 3, {"n1"}));
	w.controller->arrived(w.job(8, 1, {"n2"}));
	w.run(Millis(100));
	REQUIRE(w.pods.size() == 2);
	w.foreign("slurm-9-3f1-other", w.settings.reservations.ns, 1, "other"); // of another Slurm
	w.foreign("slurm-9-3f1-n1", "default", 1);
	w.settings.nodes.sharing = GENERATE(Sharing::none, Sharing::dedicated);
	w.fail_delete = GENERATE(0, 503);
	const bool first_pods = GENERATE(true, false);
	w.restart(first_pods);
	if (!first_pods)
		w.watch_catches_up(); // before nodes are known
	w.controller->jobs_replaced({w.job(7, 3, {"n1"}), w.job(8, 1, {"n2"})});
	w.run(Millis(100));
	if (!first_pods)
		w.list();
	w.run(Millis(11'000));
	CHECK(w.pods.size() == 2);
	CHECK(w.pods.contains("slurm-9-3f1-other"));
	CHECK(w.pods.contains("slurm-9-3f1-n1"));
	CHECK(w.watched.empty());
}

TEST_CASE("reservations: a pod in which tasks of a job run goes when that has left the node, though no node is mixed any more")
{
	ReservationWorld w;
	const auto job = w.job(7, 3, {"n1", "n2"});
	w.controller->arrived(job);
	w.run();
	for (const auto &name : {"slurm-7-3ef-n1", "slurm-7-3ef-n2"})
		w.pods.at(name).container = std::make_shared<JobContainerState>();
	w.settings.nodes.sharing = Sharing::none;
	w.restart();
	w.run(Millis(20'000));
	CHECK(w.watched == std::vector{job->ref});
	w.controller->left(job->ref, {"n1", "n2"});
	w.run(Millis(20'000));
	CHECK(w.pods.size() == 2);
	w.controller->left(job->ref, {"n2"});
	w.run(Millis(100));
	CHECK(w.only_pod() == "slurm-7-3ef-n2");
	w.controller->left(job->ref, {});
	w.run(Millis(100));
	CHECK(w.pods.empty());
}

TEST_CASE("reservations: a job whose start Slurm has forgotten finds its former pod when it comes into the gate again")
{
	ReservationWorld w;
	w.controller->arrived(w.job(8, 2));
	w.run();
	REQUIRE(w.pods.size() == 1);
	w.fail_delete = GENERATE(409, 503);
	w.restart();
	w.answers.clear();
	w.controller->jobs_replaced({});
	w.controller->arrived(w.job(8, 2)); // before the DELETE is answered
	w.run(Millis(15'000));
	CHECK(w.fate(8) == "launched");
	CHECK(w.pods.size() == 1);
}

TEST_CASE("reservations: the pod of a job that a killed slurmctld may have launched stays until Slurm has done with it")
{
	ReservationWorld w;
	const auto job = w.job(8, 2);
	w.controller->arrived(job);
	w.run();
	REQUIRE(w.fate(8) == "launched"); // which is not saved
	w.answers.clear();
	w.restart(false);
	const bool listed_first = GENERATE(true, false);
	if (listed_first)
		w.controller->jobs_replaced({job});
	w.controller->arrived(job);
	if (!listed_first)
		w.controller->jobs_replaced({job});
	const bool refused = GENERATE(true, false);
	if (refused)
		w.run(Millis(21'000)); // gateTimeout
	else
		w.controller->ended(job->ref);
	w.list();
	w.run(Millis(1'000));
	CHECK(w.fate(8) == (refused ? "back after 0 s" : "waits"));
	CHECK(w.watched == std::vector{job->ref});
	CHECK(w.only_pod() == "slurm-8-3f0-n1");
	w.controller->left(job->ref, {});
	w.run(Millis(1'000));
	CHECK(w.pods.empty());
}

TEST_CASE("reservations: a request whose answer is lost makes no second pod")
{
	ReservationWorld w;
	w.fail_create = 1;
	w.controller->arrived(w.job(7, 3));
	w.run(Millis(5'000));
	CHECK(w.fate(7) == "launched");
	CHECK(w.created == 1);
}

TEST_CASE("reservations: a missing right keeps the job in the gate, and is asked for ever less often")
{
	ReservationWorld w([](ClusterSettings &s) { s.nodes.gate_timeout = Millis(300'000); });
	w.fail_create = 403;
	w.controller->arrived(w.job(7, 3));
	w.run(Millis(60'000));
	CHECK(w.fate(7) == "waits");
	w.fail_create = 0;
	w.run(Millis(11'000));
	CHECK(w.fate(7) == "launched");
}

TEST_CASE("reservations: what others make in our names is neither believed nor deleted")
{
	ReservationWorld w;
	const std::string name = "slurm-7-3ef-n1";
	SECTION("in another namespace")
	{
		w.foreign(name, "default", 1);
		w.run();
		CHECK_FALSE(w.controller->covers(w.pods.at(name).meta.uid));
	}
	SECTION("larger than the job")
	{
		w.foreign(name, "slurm-k8s-jobs", 5);
		w.controller->arrived(w.job(7, 3));
		w.run(Millis(19'000));
		CHECK(w.fate(7) == "waits");
		w.run(Millis(5'000));
		CHECK(w.fate(7) == "back after 0 s");
		CHECK_FALSE(w.controller->covers(w.pods.at(name).meta.uid));
	}
	SECTION("in the place of ours")
	{
		w.controller->arrived(w.job(7, 3));
		w.run();
		const std::string ours = w.pods.at(name).meta.uid;
		w.foreign(name, "slurm-k8s-jobs", 3);
		w.run();
		CHECK_FALSE(w.controller->covers(w.pods.at(name).meta.uid));
		CHECK(w.pods.at(name).meta.uid != ours);
	}
	CHECK(w.pods.contains(name));
}

TEST_CASE("reservations: a pod that admission makes larger than its job is given back and said, and none is left")
{
	ReservationWorld w;
	w.admission_adds = 10; // a container that a webhook injects
	SECTION("of a job in the gate")
	{
		w.controller->arrived(w.job(7, 3));
		w.run(Millis(5'000));
		CHECK(w.fate(7) == "back after 0 s");
		CHECK(w.answers.at(7).why.find("makes the reservation pod on node n1 larger than its job") != std::string::npos);
	}
	SECTION("of one that cannot go back, and ends")
	{
		w.controller->arrived(w.job(7, 3, {"n1"}, false));
		w.run(Millis(5'000));
		CHECK(w.fate(7) == "waits");
		w.controller->ended({7, 1007});
	}
	w.run(Millis(120'000));
	CHECK(w.pods.empty());
}

namespace {

// A job with the devices 0 and 1 of n1, four of which a device plugin hands out there.
struct WithDevices : ReservationWorld {
	explicit WithDevices(bool requeues = true)
		: ReservationWorld([](ClusterSettings &s) { s.resources = {{"example.com/card", "gpu", ""}}; })
	{
		allocatable = {{"example.com/card", 4}};
		restart();
		tell_devices("n1", "", "");
		auto with = std::make_shared<NativeJob>(*job(7, 3, {"n1"}, requeues));
		with->shares[0].gres = {{"gpu", "a100", 2, {0, 1}}, {"token", "", 1, {}}};
		controller->arrived(with);
		run();
	}
	const std::string pod = "slurm-7-3ef-n1";
};

} // namespace

TEST_CASE("reservations: a job is launched when the agent has said that its pod has the job's devices")
{
	WithDevices w;
	CHECK(w.fate(7) == "waits");
	w.tell_devices("n1", w.pod, "1"); // not all of them yet
	CHECK(w.fate(7) == "waits");
	w.tell_devices("n1", w.pod, "1,0");
	CHECK(w.fate(7) == "launched");
}

TEST_CASE("reservations: a job waits while the agent does not know all devices, whatever its pod has")
{
	WithDevices w;
	w.knows_no_devices("n1");
	w.run();
	CHECK(w.fate(7) == "waits");
	w.tell_devices("n1", w.pod, "1,0");
	CHECK(w.fate(7) == "launched");
}

TEST_CASE("reservations: a job whose pod has got other devices is given these in Slurm, and launched then")
{
	WithDevices w;
	w.tell_devices("n1", w.pod, "1,2");
	CHECK(w.fate(7) == "waits");
	CHECK(w.given == std::vector<std::string>{"7 n1 gpu 1-2"});
	w.tell_devices("n1", w.pod, "2,1"); // once is enough
	w.run();
	CHECK(w.fate(7) == "launched");
	CHECK(w.given.size() == 1);
	CHECK(w.pods.contains(w.pod));
}

TEST_CASE("reservations: a job gets no devices that the mask of another pod has")
{
	WithDevices w;
	w.taken_by = [](const NativeShare &share) {
		return devices_collide(share.gres, {{"gpu", "", 1, {2}}}) ? std::optional(PodKey{"c", "ns", "other", "uid"}) : std::nullopt;
	};
	w.tell_devices("n1", w.pod, "1,2");
	CHECK(w.given.empty());
	CHECK(w.fate(7) == "back after 0 s");
	CHECK(w.answers.at(7).why.find("pod ns/other holds its cores or devices") != std::string::npos);
}

TEST_CASE("reservations: a batch job that Slurm cannot give the devices of its pod goes back into the queue, and its pod goes")
{
	WithDevices w;
	w.devices_reply = {.ok = false, .text = "another job has one of these devices"};
	w.tell_devices("n1", w.pod, "1,2");
	w.run();
	CHECK(w.fate(7) == "back after 0 s");
	CHECK(w.answers.at(7).why.find("gpu:2(1-2), and Slurm the job gpu:a100:2(0-1)") != std::string::npos);
	w.run();
	CHECK(w.pods.empty());
}

TEST_CASE("reservations: the pod of an srun that has got devices of another job is given back until another has the right ones")
{
	WithDevices w(false);
	w.devices_reply = {.ok = false, .text = "another job has one of these devices"};
	const std::string first = w.pods.at(w.pod).meta.uid;
	w.tell_devices("n1", w.pod, "1,2");
	w.run(Millis(5'000));
	REQUIRE(w.pods.contains(w.pod));
	CHECK(w.pods.at(w.pod).meta.uid != first);
	CHECK(w.fate(7) == "waits");
	SECTION("it has")
	{
		w.tell_devices("n1", w.pod, "0,1");
		CHECK(w.fate(7) == "launched");
	}
	SECTION("nobody says what it has")
	{
		w.run(Millis(20'000));
		CHECK(w.fate(7) == "back after 0 s");
		CHECK(w.answers.at(7).why.find("the agent of node n1 has not said which devices") != std::string::npos);
	}
}

TEST_CASE("reservations: a pod requests the GPUs that its job has, and is not counted beside it")
{
	ReservationWorld w([](ClusterSettings &s) { s.resources = {{"example.com/card", "gpu", ""}}; });
	w.allocatable = {{"example.com/card", 4}};
	w.restart();
	auto job = std::make_shared<NativeJob>(*w.job(7, 3));
	job->shares[0].gres = {{"gpu", "a100", 2, {0, 1}}, {"token", "", 1, {}}};
	const std::string name = "slurm-7-3ef-n1";
	SECTION("ours")
	{
		w.controller->arrived(job);
		w.run();
		CHECK(w.fate(7) == "launched");
		CHECK(w.pods.at(name).extended == std::map<std::string, std::int64_t>{{"example.com/card", 2}});
		CHECK(w.controller->covers(w.pods.at(name).meta.uid));
	}
	SECTION("somebody's of that name with more of them")
	{
		w.foreign(name, "slurm-k8s-jobs", 3, "n1", {{"example.com/card", 3}});
		w.controller->arrived(job);
		w.run();
		CHECK(w.fate(7) == "waits");
		CHECK_FALSE(w.controller->covers(w.pods.at(name).meta.uid));
	}
}

namespace {

// A job with two of the four GPUs of n1, which a maker's own plugin hands out there.
struct WithGpus : ReservationWorld {
	explicit WithGpus(const std::function<void(ClusterSettings &)> &configure = {}, const GresList &has = {{"gpu", "a100", 2, {0, 1}}})
		: ReservationWorld(configure)
	{
		allocatable = {{"nvidia.com/gpu", 4}};
		restart();
		controller->jobs_replaced({});
		auto with = std::make_shared<NativeJob>(*job(7, 3));
		with->shares[0].gres = has;
		controller->arrived(with);
		run();
	}
	using Amounts = std::map<std::string, std::int64_t>;
	Amounts requested() const { return pods.contains(pod) ? pods.at(pod).extended : Amounts(); }
	const std::string pod = "slurm-7-3ef-n1";
};

} // namespace

TEST_CASE("reservations: the pod of a job with GPUs requests those that everybody knows by their name, whatever the settings name")
{
	const std::vector<ResourceSettings> resources = GENERATE(
		std::vector<ResourceSettings>{}, std::vector<ResourceSettings>{{"rdma/hca", "k8s", "hca"}}, std::vector<ResourceSettings>{{"amd.com/gpu", "gpu", "mi300"}});
	const bool held = GENERATE(true, false); // where the administrator says that jobs and pods never both have GPUs of a node
	WithGpus w([&](ClusterSettings &s) {
		s.resources = resources;
		s.reservations.devices = held;
	});
	CHECK(w.requested() == (held ? WithGpus::Amounts{{"nvidia.com/gpu", 2}} : WithGpus::Amounts()));
	CHECK(w.controller->covers(w.pods.at(w.pod).meta.uid));
	CHECK(w.fate(7) == "launched");
}

TEST_CASE("reservations: no pod requests GPUs that its node's kubelet has not, that are slices, a driver's, or another GRES by the settings")
{
	SECTION("none there")
	{
		WithGpus w;
		w.allocatable.clear();
		w.list();
		auto other = std::make_shared<NativeJob>(*w.job(8, 1));
		other->shares[0].gres = {{"gpu", "", 1, {2}}};
		w.controller->arrived(other);
		w.run();
		CHECK(w.fate(8) == "launched");
		CHECK(w.pods.at("slurm-8-3f0-n1").extended.empty());
	}
	SECTION("a driver's")
	{
		ResourceSettings driver{.gres = "gpu"};
		driver.device_class = "gpu.nvidia.com";
		CHECK(WithGpus([&](ClusterSettings &s) { s.resources = {driver}; }).requested().empty());
	}
	SECTION("another GRES")
	CHECK(WithGpus([](ClusterSettings &s) { s.resources = {{"nvidia.com/gpu", "shard", ""}}; }).requested().empty());
}

TEST_CASE("reservations: a job gets the GPUs that the kubelet gave its pod, though the settings name none")
{
	WithGpus w;
	REQUIRE(w.fate(7) == "launched"); // no agent tells
	w.tell_devices("n1", "", "", "nvidia.com/gpu");
	auto other = std::make_shared<NativeJob>(*w.job(8, 1));
	other->shares[0].gres = {{"gpu", "a100", 1, {2}}};
	w.controller->arrived(other);
	w.run();
	CHECK(w.fate(8) == "waits");
	w.tell_devices("n1", "slurm-8-3f0-n1", "3", "nvidia.com/gpu");
	CHECK(w.given == std::vector<std::string>{"8 n1 gpu 3"});
	w.run();
	CHECK(w.fate(8) == "launched");
}

TEST_CASE("reservations: where no node is mixed, a job's GPUs are held only if the settings name some resource")
{
	const auto with = [](Sharing sharing, std::vector<ResourceSettings> resources) {
		return WithGpus([&](ClusterSettings &s) {
			s.nodes.sharing = sharing;
			s.resources = std::move(resources);
		}).requested();
	};
	const Sharing sharing = GENERATE(Sharing::none, Sharing::dedicated);
	CHECK(with(sharing, {{"rdma/hca", "k8s", "hca"}}) == WithGpus::Amounts{{"nvidia.com/gpu", 2}});
	CHECK(with(sharing, {}).empty());
}

TEST_CASE("reservations: a job's shares are copied with their GRES")
{
	const std::uint16_t devices[] = {1, 3};
	const sk8_gres gres[] = {{"gpu", "a100", 2, 2, devices}, {"token", "", 5, 0, nullptr}};
	const std::uint16_t cores[] = {0, 3};
	const sk8_share shares[] = {{"n1", 4, 100, 2, gres, 2, cores}, {"n2", 2, 0, 0, nullptr, 0, nullptr}};
	sk8_native_job job{};
	job.job_id = 7;
	job.account = "a";
	job.share_count = 2;
	job.shares = shares;
	const NativeJobPtr copy = native_from_abi(job);
	REQUIRE(copy->shares.size() == 2);
	CHECK(copy->shares[0].gres == GresList{{"gpu", "a100", 2, {1, 3}}, {"token", "", 5, {}}});
	CHECK(copy->shares[1].gres.empty());
	CHECK(copy->shares[0].cores == std::vector<std::uint16_t>{0, 3});
	CHECK(copy->shares[1].cores.empty());
}

TEST_CASE("reservations: names and labels are such that Kubernetes takes them")
{
	CHECK(label_value("physics & co") == "physics___co");
	CHECK(label_value("_-a.b-_") == "a.b");
	CHECK(label_value("\xc3\xa9\xc3\xa9").empty());
	CHECK(label_value(std::string(100, 'x')).size() == 63);
	CHECK(is_reservation_name(reservation_name({4294967295, 1'763'848'016}, "node-1.example.com")));
	for (const char *name : {"slurm-", "slurm-7", "slurm-7-", "slurm-7-3ef", "slurm-x-3ef-n1", "slurm-7-xyz-n1", "nginx"}) {
		CAPTURE(name);
		CHECK_FALSE(is_reservation_name(name));
	}
	const Json object = reservation_object({.ref = {7, 1007}, .account = "a b"}, {"n1", 2, 0}, "al/ice", {});
	CHECK(object["spec"]["nodeName"].str() == "n1");
	const Json labels = object["metadata"]["labels"];
	CHECK(labels["slurm-k8s.io/job"].str() == "7");
	CHECK(labels["slurm-k8s.io/user"].str() == "al_ice");
	CHECK(labels["slurm-k8s.io/account"].str() == "a_b");
	CHECK(object["spec"]["containers"].at(0)["resources"]["requests"].size() == 1);
	CHECK_FALSE(object["spec"]["automountServiceAccountToken"].boolean_or(true));
}

// ---- the gate ----

namespace {

struct Told {
	std::map<std::uint32_t, bool> open;
	std::string taken; // a pod holds something of this node
	std::string crowded; // pods are on this node
	Gate gate{[this](JobRef job, const GateAnswer &answer) { open[job.id] = answer.open; },
		  [this](const NativeShare &s) { return s.node == taken ? std::optional(PodKey{"c", "ns", "p", "u"}) : std::nullopt; },
		  [this](const NativeShare &s) { return s.node == crowded ? std::optional(PodKey{"c", "ns", "p", "u"}) : std::nullopt; }};

	bool arrive(std::uint32_t id, std::int64_t submitted = 1, bool exclusive = false, const std::string &image = {})
	{
		auto job = std::make_shared<NativeJob>();
		job->image = image;
		job->ref = {id, submitted};
		job->exclusive = exclusive;
		job->shares = {{.node = "n1"}, {.node = "n" + std::to_string(id)}};
		return gate.arrive(job);
	}
};

} // namespace

TEST_CASE("gate: without mixed nodes nobody waits, and before that is known everybody does")
{
	Told t;
	CHECK(t.arrive(1));
	CHECK(t.open.empty());
	t.gate.set_clusters({});
	CHECK(t.open.at(1));
	CHECK_FALSE(t.arrive(2));
}

TEST_CASE("gate: who waits no more, because no node is mixed any more, does not get what a pod holds")
{
	Told t;
	t.gate.set_clusters({"a"});
	CHECK(t.arrive(2));
	CHECK(t.arrive(3));
	t.taken = "n3";
	t.gate.set_clusters({});
	CHECK(t.open.at(2));
	CHECK_FALSE(t.open.at(3));
}

TEST_CASE("gate: a cluster that empties nodes is asked of jobs that want that, and of no others")
{
	Told t;
	t.gate.set_clusters({"mixed"}, {"emptying"});
	CHECK(t.gate.used());
	CHECK(t.arrive(1));
	CHECK(t.arrive(2, 1, true));
	CHECK(t.gate.waiting("emptying").size() == 1);
	t.gate.vote("mixed", {1, 1}, {});
	t.gate.vote("mixed", {2, 1}, {});
	CHECK(t.open == std::map<std::uint32_t, bool>{{1, true}});
	t.gate.vote("emptying", {2, 1}, {});
	CHECK(t.open.at(2));
	t.gate.set_clusters({}, {"emptying"});
	CHECK(t.gate.used());
	CHECK_FALSE(t.arrive(3));
	CHECK(t.arrive(4, 1, true));
}

TEST_CASE("gate: a cluster that has pods for containers alone is asked of jobs that want one, and of no others")
{
	Told t;
	t.gate.set_clusters({}, {}, {"dedicated"});
	CHECK(t.gate.used());
	CHECK_FALSE(t.arrive(1));
	CHECK(t.arrive(2, 1, false, "app:1"));
	CHECK(t.gate.waiting("dedicated").size() == 1);
	t.gate.vote("dedicated", {2, 1}, {});
	CHECK(t.open.at(2));
	CHECK(t.arrive(3, 1, false, "app:1"));
	t.gate.set_clusters({});
	CHECK(t.open.at(3));
	CHECK_FALSE(t.gate.used());
}

TEST_CASE("gate: where nobody empties nodes any more a job that was placed beside pods is not launched there")
{
	Told t;
	t.crowded = "n2";
	SECTION("it waits already")
	{
		t.gate.set_clusters({}, {"c"});
		CHECK(t.arrive(2, 1, true));
		CHECK(t.arrive(3, 1, true));
		t.gate.set_clusters({});
		CHECK_FALSE(t.open.at(2));
		CHECK(t.open.at(3));
	}
	SECTION("it comes afterwards")
	{
		t.gate.set_clusters({});
		CHECK(t.arrive(2, 1, true));
		CHECK_FALSE(t.open.at(2));
		CHECK_FALSE(t.arrive(3, 1, true));
		CHECK_FALSE(t.arrive(2)); // one that was placed beside them as any other
	}
	SECTION("another cluster has a say")
	{
		t.gate.set_clusters({"a"});
		CHECK(t.arrive(2, 1, true));
		t.gate.vote("a", {2, 1}, {});
		CHECK_FALSE(t.open.at(2));
	}
}

TEST_CASE("gate: each cluster has a say, one refusal is enough, and nobody is asked twice")
{
	Told t;
	t.gate.set_clusters({"a", "b"});
	CHECK(t.arrive(1));
	CHECK(t.gate.waiting("a").size() == 1);
	t.gate.vote("a", {1, 1}, {});
	CHECK(t.gate.waiting("a").empty());
	CHECK(t.open.empty());
	t.gate.vote("b", {1, 2}, {.open = false, .why = "of another run"});
	CHECK(t.open.empty());
	SECTION("open")
	{
		t.gate.vote("b", {1, 1}, {});
		CHECK(t.open.at(1));
	}
	SECTION("refused")
	{
		t.gate.vote("b", {1, 1}, {.open = false, .why = "no room"});
		CHECK_FALSE(t.open.at(1));
	}
	SECTION("a cluster goes")
	{
		t.gate.set_clusters({"a"});
		CHECK(t.open.at(1));
	}
	SECTION("it ends")
	{
		t.gate.ended({1, 2}); // another run
		CHECK(t.open.empty());
		t.gate.ended({1, 1});
		CHECK(t.open.at(1));
		t.open.clear();
		t.gate.vote("b", {1, 1}, {.open = false, .why = ""});
		CHECK(t.open.empty());
	}
	SECTION("slurmctld ends")
	{
		t.gate.pause();
		t.gate.vote("b", {1, 1}, {});
		CHECK(t.open.empty());
	}
	SECTION("slurmctld goes on after a reconfigure that failed")
	{
		t.gate.pause();
		t.gate.set_clusters({}); // late
		CHECK(t.open.empty());
		t.gate.go_on();
		t.gate.set_clusters({"a", "b"});
		CHECK(t.gate.waiting("a").size() == 1);
		t.gate.vote("a", {1, 1}, {});
		CHECK(t.open.empty());
		t.gate.vote("b", {1, 1}, {});
		CHECK(t.open.at(1));
	}
	SECTION("slurmctld reads its jobs anew")
	{
		t.gate.pause();
		t.gate.forget();
		t.gate.go_on();
		t.gate.set_clusters({"a", "b"});
		CHECK(t.gate.waiting("a").empty());
	}
	SECTION("whoever was to tell Slurm ends before")
	{
		t.gate.vote("b", {1, 1}, {});
		REQUIRE(t.gate.untold().size() == 1);
		CHECK(t.gate.untold()[0].first == JobRef{1, 1});
		CHECK(t.gate.untold()[0].second.open);
		CHECK_FALSE(t.gate.told({1, 2}));
		CHECK(t.gate.told({1, 1}));
		CHECK_FALSE(t.gate.told({1, 1}));
		CHECK(t.gate.untold().empty());
	}
}

TEST_CASE("reservations: news of many nodes in one turn let each job be looked at once, at its end")
{
	ReservationWorld w;
	w.kubelets = false; // who wants to be on n1 as well waits
	int looks = 0;
	w.taken_by = [&looks](const NativeShare &) {
		looks++;
		return std::optional<PodKey>();
	};
	for (std::uint32_t id = 1; id <= 10; id++)
		w.controller->arrived(w.job(id, 1, {"n1", "alone"}));
	w.run();
	REQUIRE(w.fate(1) == "waits");
	looks = 0;
	for (int n = 0; n < 100; n++)
		w.controller->nodes_changed();
	CHECK(looks == 0);
	w.run();
	CHECK(looks == 10);
	w.run();
	CHECK(looks == 10);
}

TEST_CASE("reservations: a job's pod that is heard of in the same turn as its node is shared stands for the job")
{
	ReservationWorld w;
	const auto job = w.job(7, 2, {"alone"});
	w.controller->jobs_replaced({job});
	w.run();
	CHECK(w.pods.empty());
	const std::string name = reservation_name(job->ref, "alone");
	w.label("alone", "shared", "true");
	w.foreign(name, w.settings.reservations.ns, 2, "alone"); // made by the engine before this one
	const std::string uid = w.pods.at(name).meta.uid;
	w.run();
	CHECK(w.created == 0);
	CHECK(w.only_pod() == name);
	CHECK(w.controller->covers(uid));
}

TEST_CASE("reservations: who shares a pod of a node that has just become mixed is known before any of them is looked at")
{
	ReservationWorld w([](ClusterSettings &s) { s.reservations.shared.max_cpus = 4; });
	const auto first = w.job(7, 2, {"alone"}), second = w.job(8, 2, {"alone"});
	w.controller->jobs_replaced({first, second});
	w.run();
	w.label("alone", "shared", "true");
	w.controller->look(first->ref);
	w.run();
	CHECK(w.created == 1);
	CHECK(w.resized == 0); // it was made for both
	CHECK(w.pods.size() == 1);
}
