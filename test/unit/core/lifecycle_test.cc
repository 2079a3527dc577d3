// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/lifecycle.h"
#include "lib/core/pod_end.h"
#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::core;
using Container = kube::ContainerStatus;

TEST_CASE("no pod is deleted and no job ended because something is only missing")
{
	for (int j = 0; j < job_states; j++) {
		const auto effect = next_effect(PodState::unknown, static_cast<JobState>(j));
		CHECK((effect == Effect::look || effect == Effect::nothing));
	}
}

TEST_CASE("a pod is bound only while its job runs, and deleted only after its job has ended, or to end it")
{
	for (int p = 0; p < pod_states; p++) {
		for (int j = 0; j < job_states; j++) {
			const auto pod = static_cast<PodState>(p);
			const auto job = static_cast<JobState>(j);
			const auto effect = next_effect(pod, job);
			CAPTURE(name(pod), name(job));
			if (effect == Effect::bind)
				CHECK(((pod == PodState::waiting && job == JobState::running) ||
				       (pod == PodState::kept && (job == JobState::running || job == JobState::preempted))));
			if (effect == Effect::delete_pod)
				CHECK((job == JobState::preempted || job == JobState::ended));
			if (effect == Effect::again)
				CHECK(job == JobState::ended);
			if (effect == Effect::submit)
				CHECK((pod == PodState::waiting && job == JobState::none));
			if (effect == Effect::release)
				CHECK(pod == PodState::over);
			if (job == JobState::submitting)
				CHECK(effect == Effect::nothing); // never two jobs
		}
	}
}

namespace {

kube::Pod bound_pod(Container::State state, int exit_code = 0)
{
	kube::Pod p;
	p.node_name = "n1";
	p.started_at = 100;
	p.phase = state == Container::State::terminated ? (exit_code ? "Failed" : "Succeeded") : "Running";
	Container c;
	c.name = "main";
	c.state = state;
	c.exit_code = exit_code;
	c.finished_at = 200;
	c.started_ever = state != Container::State::waiting;
	p.containers = {c};
	return p;
}

PodState state_of(kube::Pod p, bool held = true)
{
	PodFacts f;
	f.pod = std::make_shared<kube::Pod>(std::move(p));
	f.held_node = held ? "n1" : "";
	return classify(f);
}

} // namespace

TEST_CASE("only the kubelet's word that the last container is gone makes a pod over")
{
	using State = Container::State;
	CHECK(state_of(bound_pod(State::running)) == PodState::bound);
	CHECK(state_of(bound_pod(State::terminated)) == PodState::over);

	kube::Pod collected = bound_pod(State::running);
	collected.phase = "Failed"; // as the pod garbage collector leaves it
	CHECK(state_of(collected) == PodState::bound);

	kube::Pod rejected = bound_pod(State::waiting);
	rejected.phase = "Failed";
	rejected.containers.clear();
	CHECK(state_of(rejected) == PodState::over);
	rejected.started_at = 0; // not the kubelet's word
	CHECK(state_of(rejected) == PodState::bound);

	kube::Pod cut_off = bound_pod(State::waiting); // started after its kubelet was last heard of
	cut_off.phase = "Failed";
	CHECK(state_of(cut_off) == PodState::over);
	cut_off.garbage_collected = true;
	CHECK(state_of(cut_off) == PodState::bound);
	kube::Pod ended = bound_pod(State::terminated);
	ended.garbage_collected = true;
	CHECK(state_of(ended) == PodState::over);

	kube::Pod emptied = bound_pod(State::terminated); // its sandbox is still there, and counts for its kubelet
	emptied.phase = "Running";
	emptied.meta.deleting = true;
	emptied.gets_final_phase = true;
	CHECK(state_of(emptied) == PodState::leaving);
	emptied.phase = "Succeeded";
	CHECK(state_of(emptied) == PodState::over);
	emptied.phase = "Running"; // a kubelet before 1.27 deletes it like this
	emptied.gets_final_phase = false;
	CHECK(state_of(emptied) == PodState::over);

	kube::Pod two = bound_pod(State::terminated);
	two.containers.push_back(bound_pod(State::running).containers[0]);
	CHECK(state_of(two) == PodState::bound);

	kube::Pod between = bound_pod(State::waiting); // restarts: its last process may linger
	between.phase = "Succeeded";
	between.containers[0].started_ever = true;
	CHECK(state_of(between) == PodState::bound);
}

TEST_CASE("a pod is over when the last of however many containers is")
{
	const auto over = [](const std::string &last) {
		std::string list = "[";
		for (std::size_t i = 0; i < kube::max_containers; i++)
			list += R"({"name":"c","state":{"terminated":{"exitCode":0}}},)";
		const auto object = Json::parse(R"({"metadata":{"name":"p","namespace":"ns","uid":"u"},"spec":{"nodeName":"n"},)"
						    R"("status":{"phase":"Failed","startTime":"2026-08-01T10:00:00Z","containerStatuses":)" +
						    list + R"({"name":"l","state":)" + last + "}]}}");
		REQUIRE(object);
		const auto pod = kube::decode_pod(*object);
		REQUIRE(pod);
		return kubelet_reports_over(**pod);
	};
	CHECK_FALSE(over(R"({"running":{}})"));
	CHECK(over(R"({"terminated":{"exitCode":0}})"));
}

TEST_CASE("a pod that goes before it had a node is over, and one that is proved absent is gone or lost")
{
	kube::Pod pending;
	pending.phase = "Pending";
	CHECK(state_of(pending, false) == PodState::waiting);
	pending.meta.deleting = true;
	CHECK(state_of(pending, false) == PodState::over);
	CHECK(state_of(pending, true) == PodState::over); // its Binding was refused: it is being deleted

	PodFacts f;
	CHECK(classify(f) == PodState::unknown);
	f.absent = true;
	CHECK(classify(f) == PodState::gone);
	f.held_node = "n1";
	CHECK(classify(f) == PodState::lost);
	f.seen_gone = true;
	CHECK(classify(f) == PodState::gone);
	kube::Pod runs = bound_pod(Container::State::running);
	f.absent = false;
	f.pod = std::make_shared<kube::Pod>(runs); // a backup of etcd brought it back
	CHECK(classify(f) == PodState::bound);
}

TEST_CASE("ends of pods become ends of jobs")
{
	struct Row {
		const char *what;
		void (*edit)(kube::Pod &);
		sk8_job_state state;
		std::uint32_t exit_code;
	};
	static const Row rows[] = {
		{"exit 0", [](kube::Pod &) {}, SK8_JOB_COMPLETED, 0},
		{"exit 7", [](kube::Pod &p) { p = bound_pod(Container::State::terminated, 7); }, SK8_JOB_FAILED, 7 << 8},
		{"signal", [](kube::Pod &p) {
			 p = bound_pod(Container::State::terminated, 137);
			 p.containers[0].signal = 9;
		 }, SK8_JOB_FAILED, 9},
		{"out of memory", [](kube::Pod &p) {
			 p = bound_pod(Container::State::terminated, 137);
			 p.containers[0].reason = "OOMKilled";
		 }, SK8_JOB_OUT_OF_MEMORY, 137 << 8},
		{"an OOMKilled that did not make it fail", [](kube::Pod &p) {
			 p.containers[0].reason = "OOMKilled";
			 p.containers[0].exit_code = 137;
		 }, SK8_JOB_COMPLETED, 0},
		{"deadline", [](kube::Pod &p) {
			 p = bound_pod(Container::State::terminated, 143);
			 p.reason = "DeadlineExceeded";
		 }, SK8_JOB_TIMEOUT, 0},
		{"rejected by the kubelet", [](kube::Pod &p) {
			 p.phase = "Failed";
			 p.reason = "OutOfcpu";
			 p.containers.clear();
		 }, SK8_JOB_FAILED, 1 << 8},
		{"the first failure counts", [](kube::Pod &p) {
			 p = bound_pod(Container::State::terminated, 143);
			 p.containers[0].finished_at = 300;
			 p.containers.push_back(bound_pod(Container::State::terminated, 3).containers[0]);
		 }, SK8_JOB_FAILED, 3 << 8},
		{"deleted, then exit 0", [](kube::Pod &p) {
			 p.meta.deleting = true;
			 p.meta.deletion_time = 180;
			 p.meta.deletion_grace_seconds = 30;
		 }, SK8_JOB_CANCELLED, 0},
		{"exit 0, then deleted", [](kube::Pod &p) {
			 p.meta.deleting = true;
			 p.meta.deletion_time = 231;
			 p.meta.deletion_grace_seconds = 30;
		 }, SK8_JOB_COMPLETED, 0},
		{"exit 5 in the second of the deletion", [](kube::Pod &p) {
			 p = bound_pod(Container::State::terminated, 5);
			 p.meta.deleting = true;
			 p.meta.deletion_time = 230;
			 p.meta.deletion_grace_seconds = 30;
		 }, SK8_JOB_FAILED, 5 << 8},
		{"terminated in the second of the deletion", [](kube::Pod &p) {
			 p = bound_pod(Container::State::terminated, 143);
			 p.meta.deleting = true;
			 p.meta.deletion_time = 230;
			 p.meta.deletion_grace_seconds = 30;
		 }, SK8_JOB_CANCELLED, 0},
		{"deleted before it started", [](kube::Pod &p) {
			 p.meta.deleting = true;
			 p.containers.clear();
		 }, SK8_JOB_CANCELLED, 0},
	};
	for (const Row &row : rows) {
		kube::Pod pod = bound_pod(Container::State::terminated);
		row.edit(pod);
		const JobEnd end = end_of_pod(&pod, PodState::over, "", 0);
		CAPTURE(row.what, end.comment);
		CHECK(end.state == row.state);
		CHECK(end.exit_code == row.exit_code);
	}
}

TEST_CASE("a pod that was seen running while it was deleted was cancelled, whatever its exit code")
{
	kube::Pod pod = bound_pod(Container::State::running);
	CHECK_FALSE(deleted_alive(pod));
	pod.meta.deleting = true;
	pod.meta.deletion_time = 230;
	pod.meta.deletion_grace_seconds = 30;
	CHECK(deleted_alive(pod));

	pod = bound_pod(Container::State::terminated); // at 200
	pod.meta.deleting = true;
	pod.meta.deletion_time = 230;
	pod.meta.deletion_grace_seconds = 30;
	CHECK_FALSE(deleted_alive(pod));
	CHECK(end_of_pod(&pod, PodState::over, "", 200).state == SK8_JOB_CANCELLED);
	CHECK(end_of_pod(&pod, PodState::over, "", 0).state == SK8_JOB_COMPLETED);
	SECTION("the kubelet's last delete has overwritten the time")
	{
		pod = bound_pod(Container::State::terminated, 137);
		pod.meta.deleting = true;
		pod.meta.deletion_time = 203;
		pod.meta.deletion_grace_seconds = 0;
		CHECK(end_of_pod(&pod, PodState::over, "", 0).state == SK8_JOB_CANCELLED);
		pod.containers[0].reason = "OOMKilled";
		CHECK(end_of_pod(&pod, PodState::over, "", 0).state == SK8_JOB_OUT_OF_MEMORY);
		pod.containers[0].reason.clear();
		pod.containers[0].exit_code = 5;
		CHECK(end_of_pod(&pod, PodState::over, "", 0).state == SK8_JOB_FAILED);
		return;
	}
	pod.meta.deletion_time = 231; // it had ended a second before
	CHECK(end_of_pod(&pod, PodState::over, "", 201).state == SK8_JOB_COMPLETED);
	pod.meta.deletion_grace_seconds = 0; // also if its kubelet told of the end only after the DELETE
	pod.meta.deletion_time = 205;
	CHECK(end_of_pod(&pod, PodState::over, "", 201).state == SK8_JOB_COMPLETED);
}

TEST_CASE("a pod that a node is kept for goes nowhere else, until it is bound or goes")
{
	kube::Pod pod;
	pod.phase = "Pending";
	PodFacts f;
	f.held_node = "n1";
	f.pod = std::make_shared<kube::Pod>(pod);
	CHECK(classify(f) == PodState::kept);
	Job job;
	job.state = SK8_JOB_RUNNING;
	job.node = "n1";
	f.job = &job;
	CHECK(classify(f) == PodState::kept);
	job.node = "n2";
	CHECK(classify(f) == PodState::stray);
	pod.meta.deleting = true;
	f.pod = std::make_shared<kube::Pod>(pod);
	CHECK(classify(f) == PodState::over);
}
