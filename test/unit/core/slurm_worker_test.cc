// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The Slurm thread, one round at a time, over a slurmctld of a few lines.
#include "lib/core/slurm_worker.h"

#include "lib/core/gate.h"
#include "test/unit/catch.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <stdexcept>

using namespace sk8;
using namespace sk8::core;

namespace {

struct FakeJob {
	std::string mark, node;
	sk8_job_state state = SK8_JOB_PENDING;
	std::uint32_t priority = 100;
	std::int64_t submit_time = 5000;
	std::int64_t preempt_end = 0;
	bool has_gpu = false; // the first one
};

class FakeClock final : public Clock {
public:
	Millis monotonic() const override { return Millis(wall * 1000 + millis); }
	std::int64_t wall_seconds() const override { return wall; }
	std::int64_t wall = 10'000;
	std::int64_t millis = 0; // more
};

// C functions have no context: one slurmctld per process, as in life.
struct FakeSlurm {
	std::map<std::uint32_t, FakeJob> jobs;
	std::uint32_t next = 1;
	bool active = true, locked = false, write = false, starts_at_once = false, refuse = false;
	std::int64_t job_update = 0, node_update = 0;
	int locks = 0, finds = 0, wakes = 0, tells = 0, submits = 0, walks = 0;
	bool in_backfill = false;
	bool full = false; // MaxJobCount
	bool ends_with_next_submit = false, ends_with_next_find = false; // slurmctld
	bool submitting_seen = false, masked_during_submit = false, masked_during_end = false;
	bool cannot_start = false;
	std::string started_on, end_node;
	std::string reason; // why n1 is drained; empty: it is not
	std::string features; // of the node
	std::uint32_t used_cores = 0;
	std::vector<std::uint32_t> excluded; // in this order
	bool saves_power = false;
	int kept_up = 0;
	std::vector<std::uint32_t> spared;
	std::string native_end;
	int lock_of_start = 0, lock_of_devices = 0;
	std::string answered; // "7 open, "
	std::uint32_t unregistered = 0; // a job one of whose nodes has not registered
	std::uint32_t srun = 0; // this job's srun waits for it in the gate
	std::map<std::uint32_t, std::pair<std::int64_t, std::string>> natives; // jobs of Slurm's own: submit time, node
	HoldTable *holds = nullptr;
	FakeClock *clock = nullptr;
	std::int64_t walk_takes = 0; // ms, of the nodes
} fake;

void need_lock(bool write)
{
	if (!fake.locked || (write && !fake.write))
		throw std::logic_error("called without slurmctld's locks");
}

bool find(std::uint32_t id, sk8_job *out)
{
	need_lock(false);
	fake.finds++;
	fake.active &= !std::exchange(fake.ends_with_next_find, false);
	auto it = fake.jobs.find(id);
	if (it == fake.jobs.end())
		return false;
	*out = {};
	out->job_id = id;
	out->submit_time = it->second.submit_time;
	out->mark = it->second.mark.c_str();
	out->state = it->second.state;
	out->priority = it->second.priority;
	out->preempt_end = it->second.preempt_end;
	out->node = it->second.node.c_str();
	out->ended_by = SK8_NO_UID;
	out->excluded_nodes = "";
	static const std::uint16_t first = 0;
	static const sk8_gres one_gpu{"gpu", "", 1, 1, &first};
	if (it->second.has_gpu && it->second.state == SK8_JOB_RUNNING) {
		out->gres_count = 1;
		out->gres = &one_gpu;
	}
	return true;
}

void submit(const sk8_submit *s, sk8_outcome *out)
{
	need_lock(true);
	fake.submits++;
	fake.lock_of_start = fake.locks;
	fake.active &= !std::exchange(fake.ends_with_next_submit, false);
	fake.submitting_seen = submitting_now();
	fake.masked_during_submit = fake.holds->masks() != nullptr;
	if (fake.full) {
		*out = {.rc = EAGAIN, .fatal = false};
		std::strcpy(out->text, "full");
		return;
	}
	if (fake.refuse) {
		*out = {.rc = 1, .fatal = true};
		std::strcpy(out->text, "Invalid account");
		return;
	}
	FakeJob job;
	job.mark = s->mark;
	job.has_gpu = std::string(s->tres_per_node) == "gpu:1";
	if (fake.starts_at_once || s->required_node[0]) {
		job.state = SK8_JOB_RUNNING;
		job.node = s->required_node;
	}
	fake.jobs[fake.next] = job;
	*out = {.job_id = fake.next++};
}

void start(std::uint32_t id, std::int64_t submit_time, const char *mark, const char *node, sk8_outcome *out)
{
	need_lock(true);
	FakeJob &job = fake.jobs.at(id);
	if (job.mark != mark || job.submit_time != submit_time || job.state != SK8_JOB_PENDING)
		throw std::logic_error("start of another job");
	fake.masked_during_submit = fake.holds->masks() != nullptr;
	fake.started_on = node;
	fake.lock_of_start = fake.locks;
	*out = {.rc = fake.cannot_start, .job_id = id};
	if (fake.cannot_start)
		return;
	job.state = SK8_JOB_RUNNING;
	job.node = node;
}

void end(const sk8_end *e, sk8_outcome *out)
{
	need_lock(true);
	fake.end_node = e->node;
	fake.masked_during_end = fake.holds->masks() != nullptr;
	auto it = fake.jobs.find(e->job_id);
	if (it == fake.jobs.end() || it->second.mark != e->mark || it->second.submit_time != e->submit_time) {
		*out = {.rc = 1, .fatal = true};
		return;
	}
	it->second.state = e->state;
	*out = {};
}

void lock(bool write)
{
	if (fake.locked)
		throw std::logic_error("slurmctld's locks taken twice");
	fake.locked = true;
	fake.write = write;
	fake.locks++;
}

void unlock(bool write, bool changed, bool masks)
{
	if (masks && !write)
		throw std::logic_error("nodes are stamped without the write lock");
	fake.locked = false;
	fake.wakes += changed;
	fake.tells += masks;
	if (masks)
		fake.node_update = fake.clock->wall;
}

sk8_node a_node()
{
	sk8_node n{};
	n.name = "n1";
	n.threads_per_core = 2;
	n.sockets = 2;
	n.cores_per_socket = 3; // one is specialised of each
	n.cores = 4;
	static constexpr sk8_gres in_its_order[] = {{"gpu", "t4", 2, 0, nullptr}, {"gpu", "a100", 1, 0, nullptr}};
	n.gres_count = std::size(in_its_order);
	n.gres = in_its_order;
	n.used_cores = fake.used_cores;
	n.drain = !fake.reason.empty();
	n.reason = fake.reason.c_str();
	n.reason_uid = 7;
	n.job_count = 3;
	n.features = fake.features.c_str();
	n.active_features = "k8s.a.b";
	return n;
}

const sk8_slurm_ops ops = {
	.active = [] { return fake.active; },
	.last_job_update = [] { return fake.job_update; },
	.last_node_update = [] { return fake.node_update; },
	.lock = lock,
	.unlock = unlock,
	.in_backfill = [] { return fake.in_backfill; },
	.submit = submit,
	.start = start,
	.end = end,
	.exclude =
		[](std::uint32_t id, std::int64_t, const char *, const char *, sk8_outcome *out) {
			need_lock(true);
			fake.excluded.push_back(id);
			*out = {};
		},
	.spare =
		[](std::uint32_t id, std::int64_t, const char *mark, sk8_outcome *out) {
			need_lock(true);
			if (fake.jobs.at(id).mark == mark)
				fake.spared.push_back(id);
			*out = {};
		},
	.find = find,
	.each_job =
		[](void (*f)(void *, const sk8_job *), void *arg) {
			fake.walks++;
			for (const auto &[id, j] : fake.jobs) {
				sk8_job view{};
				find(id, &view);
				f(arg, &view);
			}
		},
	.each_node =
		[](void (*f)(void *, const sk8_node *), void *arg) {
			need_lock(false);
			const sk8_node n = a_node();
			f(arg, &n);
			fake.clock->millis += fake.walk_takes;
		},
	.find_node =
		[](const char *name, sk8_node *node) {
			*node = a_node();
			return std::string(name) == "n1";
		},
	.saves_power = [] { return fake.saves_power; },
	.keep_masked_nodes_up =
		[] {
			need_lock(true);
			fake.kept_up++;
		},
	.change_node =
		[](const sk8_node_change *c, sk8_outcome *out) {
			need_lock(true);
			*out = {};
			out->rc = fake.reason == c->expected ? 0 : 1;
			if (!out->rc)
				fake.reason = c->reason;
		},
	.change_features =
		[](const sk8_feature_change *c, sk8_outcome *out) {
			need_lock(true);
			*out = {};
			out->rc = fake.features == c->expected && std::string(c->expected_active) == "k8s.a.b" ? 0 : 1;
			if (!out->rc)
				fake.features = c->features;
		},
	.with_native =
		[](std::uint32_t id, void (*f)(void *, const sk8_native_job *), void *arg) {
			need_lock(false);
			const auto it = fake.natives.find(id);
			if (it == fake.natives.end())
				return;
			sk8_share share{};
			share.node = it->second.second.c_str();
			sk8_native_job job{};
			job.job_id = id;
			job.submit_time = it->second.first;
			job.share_count = 1;
			job.shares = &share;
			f(arg, &job);
		},
	.nodes_registered =
		[](std::uint32_t job_id) {
			need_lock(false);
			return job_id != fake.unregistered;
		},
	.end_native =
		[](const sk8_native_end *e, sk8_outcome *out) {
			need_lock(true);
			fake.native_end = std::to_string(e->job_id) + " " + std::to_string(e->submit_time) + " " + e->comment;
			*out = {};
			out->told = e->job_id == fake.srun && !e->told;
			out->running = !out->told && e->requeue;
			if (out->told)
				fake.native_end.insert(0, "told: ");
		},
	.set_devices =
		[](const sk8_device_change *c, sk8_outcome *out) {
			need_lock(true);
			fake.lock_of_devices = fake.locks;
			fake.native_end = std::to_string(c->job_id) + " " + std::to_string(c->submit_time) + " " + c->node + " " + c->gres;
			for (std::uint32_t k = 0; k < c->device_count; k++)
				fake.native_end += " " + std::to_string(c->devices[k]);
			*out = {};
		},
	.tell_refusal =
		[](const sk8_gate_answer *a) {
			need_lock(false);
			if (a->job_id == fake.srun)
				fake.answered += "told: " + std::string(a->why) + ", ";
			return a->job_id == fake.srun;
		},
	.answer_gate =
		[](const sk8_gate_answer *a) {
			if (fake.locked)
				throw std::logic_error("answered under slurmctld's locks");
			fake.answered += std::to_string(a->job_id) + (a->open ? " open, " : " refused, ");
		},
};

// Runs what is posted at once and writes down what it hears.
class Listener final : public SlurmListener {
public:
	void post(std::function<void()> f) override
	{
		if (fake.locked)
			throw std::logic_error("an engine was called under slurmctld's locks");
		posts++;
		if (late)
			waiting.push_back(std::move(f));
		else
			f();
	}
	void catch_up()
	{
		for (const auto &f : std::exchange(waiting, {}))
			f();
	}
	void slurm_nodes(std::vector<SlurmNode> n) override
	{
		nodes = std::move(n);
		lists++;
	}
	void overcommits(const Overcommits &o) override { over = o; }
	void jobs_replaced(const std::vector<std::pair<PodKey, JobPtr>> &jobs) override { listed = jobs.size(); }
	void job_changed(const PodKey &, const JobPtr &job) override { changes.push_back(*job); }
	void job_purged(const PodKey &, JobRef ref) override { purged.push_back(ref.id); }

	bool wants_natives() const override { return natives; }
	void native_left(JobRef job, const std::set<std::string> &still_on) override
	{
		left += std::to_string(job.id) + "/" + std::to_string(job.submit_time) + ":";
		for (const auto &node : still_on)
			left += " " + node;
		left += ", ";
	}

	int posts = 0, lists = 0;
	bool late = false; // nothing runs before catch_up()
	std::vector<std::function<void()>> waiting;
	bool natives = false;
	std::string left; // "7/1000: n1, "
	std::size_t listed = 999;
	std::vector<SlurmNode> nodes;
	Overcommits over;
	std::vector<Job> changes;
	std::vector<std::uint32_t> purged;
};

struct Stand {
	Stand()
	{
		fake = FakeSlurm();
		fake.holds = &holds;
		fake.clock = &clock;
		worker.attach(worker.seat("c"), listener);
	}
	SlurmReply submit(int n, const std::string &node = "")
	{
		JobRequest r;
		r.key = {"c", "ns", "p" + std::to_string(n), "u" + std::to_string(n)};
		r.required_node = node;
		auto reply = std::make_shared<SlurmReply>(); // the answer may come after we left
		port->submit(r, [reply](const SlurmReply &got) { *reply = got; });
		worker.round();
		last_round = clock.monotonic();
		return *reply;
	}
	// A quarter of a second after the last one, or later: each looks at what there is.
	void round()
	{
		clock.millis += std::max(last_round + Millis(250) - clock.monotonic(), Millis(0)).count();
		worker.round();
		last_round = clock.monotonic();
	}

	HoldTable holds;
	FakeClock clock;
	// One that holds slurmctld's locks for so many milliseconds.
	void look_for_long(std::int64_t ms)
	{
		round();
		fake.walk_takes = ms;
		clock.wall++;
		fake.node_update = clock.wall;
		round();
		fake.walk_takes = 0;
		listener->lists = 0;
	}
	Millis last_round{0};
	SlurmWorker worker{ops, holds, clock};
	std::shared_ptr<Listener> listener = std::make_shared<Listener>();
	std::unique_ptr<SlurmPort> port = worker.port(worker.seat("c"));
};

} // namespace

TEST_CASE("a new engine hears of every job and node once, also without news")
{
	Stand s;
	fake.jobs[7].mark = "k8s:c/ns/p/u";
	s.round();
	CHECK(s.listener->listed == 1);
	REQUIRE(s.listener->nodes.size() == 1);
	CHECK(s.listener->nodes[0].threads_per_core == 2);
	CHECK(s.listener->nodes[0].sockets == 2);
	CHECK(s.listener->nodes[0].cores_per_socket == 3);
	CHECK(s.listener->nodes[0].gres == GresList{{"gpu", "t4", 2, {}}, {"gpu", "a100", 1, {}}}); // by which it counts devices
	CHECK(s.listener->nodes[0].jobs == 3);
}

// Of a pod that came second, of the 8 that n1 has.
static Hold of_three_threads()
{
	Hold out;
	out.key = {"c", "ns", "daemon", "u"};
	out.node = "n1";
	out.milli_cpu = 3000;
	return out;
}

TEST_CASE("engines hear where pods and jobs together have more than there is, with each list of nodes")
{
	Stand s;
	s.holds.hold_foreign(of_three_threads());
	fake.used_cores = 3;
	s.round();
	CHECK(s.listener->over == Overcommits{{"n1", {1000, 0, {}}}});
	fake.used_cores = 2;
	fake.node_update = s.clock.wall;
	s.round();
	CHECK(s.listener->over.empty());
}

TEST_CASE("engines hear of it also when the pod comes, and goes, long after Slurm's last news of nodes")
{
	Stand s;
	fake.used_cores = 3;
	fake.node_update = s.clock.wall;
	s.round();
	s.clock.wall += 100;
	s.round();
	CHECK(s.listener->over.empty());
	s.holds.hold_foreign(of_three_threads());
	s.round();
	CHECK(s.listener->over == Overcommits{{"n1", {1000, 0, {}}}});
	s.holds.release(of_three_threads().key);
	s.round(); // the mask goes with it
	CHECK(s.listener->over.empty());
	s.clock.wall++; // the stamp is news once more, and then no longer
	s.round();
	const int posts = s.listener->posts;
	s.round();
	CHECK(s.listener->posts == posts);
}

TEST_CASE("a node is changed under the write lock, and the answer has it as it is then, changed or not")
{
	Stand s;
	s.round();
	auto port = s.worker.node_port(s.worker.seat("c"));
	SlurmReply reply;
	for (bool first : {true, false}) {
		port->change_node({"n1", SK8_NODE_DRAIN, "k8s: cordoned", ""}, [&](const SlurmReply &r) { reply = r; });
		s.round();
		CHECK(reply.ok == first);
		REQUIRE(reply.node);
		CHECK(reply.node->drain);
		CHECK(reply.node->reason == "k8s: cordoned");
	}
}

TEST_CASE("features are changed under the write lock if they are as expected, and the answer has them as they are then")
{
	Stand s;
	fake.features = "theirs";
	s.round();
	CHECK(s.listener->nodes.at(0).features == "theirs");
	CHECK(s.listener->nodes.at(0).active_features == "k8s.a.b");
	auto port = s.worker.node_port(s.worker.seat("c"));
	SlurmReply reply;
	for (bool first : {true, false}) {
		port->change_features({"n1", "theirs", "k8s.a.b", "theirs,k8s.a.b", "k8s.a.b"}, [&](const SlurmReply &r) { reply = r; });
		s.round();
		CHECK(reply.ok == first);
		REQUIRE(reply.node);
		CHECK(reply.node->features == "theirs,k8s.a.b");
	}
}

TEST_CASE("one live job per pod, also when the submit is repeated")
{
	Stand s;
	auto first = s.submit(1), again = s.submit(1);
	REQUIRE(first.ok);
	CHECK(again.ok);
	CHECK(again.job->ref == first.job->ref);
	CHECK(fake.submits == 1);
	CHECK(fake.submitting_seen);
	CHECK_FALSE(submitting_now());
}

TEST_CASE("Slurm's refusal comes back in its words")
{
	Stand s;
	fake.refuse = true;
	auto r = s.submit(1);
	CHECK_FALSE(r.ok);
	CHECK(r.fatal);
	CHECK(r.text == "Invalid account");
}

TEST_CASE("a Slurm that takes no more jobs is asked once a second, however many pods wait")
{
	Stand s;
	fake.full = true;
	for (int i = 1; i <= 20; i++) {
		auto r = s.submit(i);
		CHECK_FALSE(r.ok);
		CHECK_FALSE(r.fatal);
		CHECK(r.text == "full");
	}
	CHECK(fake.submits == 1);
	fake.full = false;
	CHECK_FALSE(s.submit(1).ok);
	s.clock.wall++;
	CHECK(s.submit(1).ok);
	CHECK(s.submit(2).ok);
	CHECK(fake.submits == 3);
}

TEST_CASE("an adopted pod's own mask does not keep its job away")
{
	Stand s;
	s.holds.adopt({{"c", "ns", "p1", "u1"}, "n1", {}, 2, 10});
	REQUIRE(s.holds.masks());
	s.submit(1, "n1");
	CHECK_FALSE(fake.masked_during_submit);
	CHECK(s.holds.masks()); // no hook told that the job runs: the mask is back
}

TEST_CASE("a pod that runs while its job waits gets that job started, without its own mask in the way")
{
	Stand s;
	auto waiting = s.submit(1);
	s.holds.adopt({{"c", "ns", "p1", "u1"}, "n1", {}, 2, 10});
	fake.cannot_start = GENERATE(false, true);
	auto r = s.submit(1, "n1");
	CHECK(fake.submits == 1);
	CHECK(fake.started_on == "n1");
	CHECK_FALSE(fake.masked_during_submit);
	CHECK(s.holds.masks());
	CHECK(r.ok == !fake.cannot_start);
	if (r.ok) {
		CHECK(r.job->ref == waiting.job->ref);
		CHECK(r.job->running());
	}
}

TEST_CASE("an adopted pod's job gets the devices that the pod has, before anybody else can start")
{
	Stand s;
	JobRequest r;
	r.key = {"c", "ns", "p1", "u1"};
	r.gres = {{"gpu", "", 1, {}}};
	r.devices = {{"gpu", "", 1, {3}}};
	SlurmReply reply;
	const auto submit = [&] {
		s.port->submit(r, [&](const SlurmReply &got) { reply = got; });
		s.worker.round();
	};
	SECTION("a new one") {}
	SECTION("one that waited")
	{
		submit();
		CHECK(fake.lock_of_devices == 0);
	}
	r.required_node = "n1";
	submit();
	REQUIRE(reply.ok);
	CHECK(fake.native_end == "1 5000 n1 gpu 3");
	CHECK(fake.lock_of_devices == fake.lock_of_start);
	SECTION("but not other ones than it has, or another number of them")
	{
		fake.native_end.clear();
		r.key.uid = "u2";
		r.devices = {{"gpu", "", 1, {0}}};
		submit();
		r.key.uid = "u3";
		r.devices = {{"gpu", "", 2, {1, 3}}};
		submit();
		CHECK(reply.ok);
		CHECK(fake.native_end.empty());
	}
}

TEST_CASE("an end that must start its job first does so without the pod's own mask")
{
	Stand s;
	auto r = s.submit(1);
	const PodKey key{"c", "ns", "p1", "u1"};
	s.holds.adopt({key, "n1", {}, 2, 10});
	const std::string node = GENERATE("", "n1");
	s.port->end(key, r.job->ref, {SK8_JOB_FAILED, 7 << 8, "", node}, [](const SlurmReply &) {});
	s.round();
	CHECK(fake.end_node == node);
	CHECK(fake.masked_during_end == node.empty());
	CHECK(s.holds.masks());
}

TEST_CASE("what has no hook is found by the scan, and only when Slurm says that something changed")
{
	Stand s;
	auto r = s.submit(1);
	s.clock.wall += 5;
	s.round();
	const int locks = fake.locks;
	s.round();
	s.round();
	CHECK(fake.locks == locks); // nothing changed: no lock is taken

	fake.jobs[r.job->ref.id].priority = 0; // scontrol hold
	fake.job_update = s.clock.wall;
	s.round();
	REQUIRE(s.listener->changes.size() == 1);
	CHECK(s.listener->changes[0].priority == 0);
	s.round();
	CHECK(s.listener->changes.size() == 1);

	fake.jobs[r.job->ref.id].state = SK8_JOB_CANCELLED; // in the same second
	s.round();
	REQUIRE(s.listener->changes.size() == 2);
	CHECK(s.listener->changes[1].state == SK8_JOB_CANCELLED);
}

TEST_CASE("a pending job that got our mark by an administrator's hand is found within ten seconds, and told once")
{
	const bool alone = GENERATE(false, true); // there is no other job of ours
	Stand s;
	if (!alone)
		s.submit(1);
	else
		s.round();
	fake.jobs[77] = {};
	fake.jobs[77].mark = PodKey{"c", "ns", "p1", "u1"}.mark();
	fake.jobs[78] = {};
	fake.jobs[78].mark = "somebody's";
	fake.jobs[79] = fake.jobs[77];
	fake.jobs[79].state = SK8_JOB_CANCELLED;
	s.clock.wall += 11;
	fake.job_update = s.clock.wall;
	for (int i = 0; i < 5; i++)
		s.round();
	REQUIRE(s.listener->changes.size() == 1);
	CHECK(s.listener->changes[0].ref.id == 77);

	fake.jobs[77].state = SK8_JOB_CANCELLED; // looked at from now on as any of ours
	s.round();
	REQUIRE(s.listener->changes.size() == 2);
	CHECK(s.listener->changes[1].ended());
}

TEST_CASE("a submit finds the job that its pod has, also after the end of another one that it had")
{
	Stand s;
	const std::uint32_t id = s.submit(1).job->ref.id;
	fake.jobs[77] = {};
	fake.jobs[77].mark = PodKey{"c", "ns", "p1", "u1"}.mark();
	s.clock.wall += 11;
	fake.job_update = s.clock.wall;
	s.round();
	const bool purged = GENERATE(false, true);
	if (purged)
		fake.jobs.erase(77);
	else
		fake.jobs[77].state = SK8_JOB_CANCELLED;
	s.round();
	const auto r = s.submit(1);
	REQUIRE(r.job);
	CHECK(r.job->ref.id == id);
	CHECK(fake.submits == 1);
}

TEST_CASE("all of Slurm's jobs are walked no more often than each ten seconds, and only if any has changed")
{
	Stand s;
	s.round();
	const int walks = fake.walks;
	for (int i = 0; i < 100; i++) {
		s.clock.wall++;
		fake.job_update = s.clock.wall;
		s.round();
	}
	CHECK(fake.walks - walks >= 9);
	CHECK(fake.walks - walks <= 10);
	s.clock.wall += 11;
	s.round(); // that last second's news
	const int all = fake.walks;
	s.clock.wall += 100;
	s.round();
	CHECK(fake.walks == all);
}

TEST_CASE("what happens after the clock was set back is found, and then only news again")
{
	Stand s;
	auto r = s.submit(1);
	s.clock.wall += 5;
	s.round();
	s.clock.wall -= 3600;
	s.clock.millis += 3'600'000; // which goes on
	fake.jobs[r.job->ref.id].state = SK8_JOB_CANCELLED;
	fake.job_update = fake.node_update = s.clock.wall;
	s.round();
	REQUIRE(s.listener->changes.size() == 1);
	CHECK(s.listener->changes[0].state == SK8_JOB_CANCELLED);

	s.submit(2);
	s.clock.wall += 5;
	s.round();
	const int locks = fake.locks;
	s.round();
	CHECK(fake.locks == locks);
	s.clock.wall += 3600; // and forward
	s.round();
	CHECK(fake.locks == locks);
}

TEST_CASE("a preempted job is told once, and Slurm is kept from ending it before its pod, also after a start")
{
	Stand s;
	const std::uint32_t id = s.submit(1).job->ref.id;
	SECTION("it is found by the scan")
	{
		fake.jobs[id].state = SK8_JOB_RUNNING;
		s.round();
		CHECK(fake.spared.empty());
	}
	fake.jobs[id].state = SK8_JOB_RUNNING;
	fake.jobs[id].preempt_end = 10'090;
	SECTION("it is found at a start") { s.worker.reread(); }
	fake.job_update = s.clock.wall;
	for (int i = 0; i < 5; i++)
		s.round();
	CHECK(fake.spared == std::vector<std::uint32_t>{id});
	CHECK(std::ranges::count_if(s.listener->changes, [](const Job &j) { return j.preempted(); }) <= 1);
}

TEST_CASE("a purged job and a reused id are told as the end of what was known")
{
	const bool reused = GENERATE(false, true);
	Stand s;
	auto r = s.submit(1);
	if (reused)
		fake.jobs[r.job->ref.id].submit_time++;
	else
		fake.jobs.clear();
	s.clock.wall++;
	fake.job_update = s.clock.wall;
	s.round();
	CHECK(s.listener->purged == std::vector<std::uint32_t>{r.job->ref.id});
}

TEST_CASE("ends go before submits, in few lock holds, and the scheduler is woken")
{
	Stand s;
	auto r = s.submit(1);
	fake.jobs[r.job->ref.id].state = SK8_JOB_RUNNING;
	for (int n = 2; n < 30; n++)
		s.port->submit({.key = {"c", "ns", "p", "u" + std::to_string(n)}}, [](const SlurmReply &) {});
	bool ended_first = false;
	s.port->end({"c", "ns", "p1", "u1"}, r.job->ref, {SK8_JOB_COMPLETED, 0, ""},
		    [&](const SlurmReply &reply) { ended_first = reply.ok && s.listener->posts > 0; });
	const int locks = fake.locks, wakes = fake.wakes;
	s.round();
	CHECK(ended_first);
	CHECK(fake.submits == 29);
	CHECK(fake.locks - locks <= 3);
	CHECK(fake.wakes > wakes);
}

TEST_CASE("nodes with pods are kept up all the time where Slurm powers nodes down, and only there")
{
	Stand s;
	const auto rounds = [&s] {
		for (int i = 0; i < 100; i++) {
			s.clock.wall++;
			s.round();
		}
		return std::exchange(fake.kept_up, 0);
	};
	fake.saves_power = true;
	CHECK(rounds() == 0); // nothing is masked
	s.holds.adopt({{"c", "ns", "p1", "u1"}, "n1", {0}, 0, 1});
	const int kept = rounds();
	CHECK(kept >= 9);
	CHECK(kept <= 11);
	fake.saves_power = false;
	CHECK(rounds() == 0);
}

TEST_CASE("where Slurm powers nodes down it is told once more when the last pod is gone: nodes may have waited for that")
{
	Stand s;
	const auto round = [&s](int seconds) {
		for (int i = 0; i < seconds; i++) {
			s.clock.wall++;
			s.round();
		}
		return std::exchange(fake.kept_up, 0);
	};
	fake.saves_power = true;
	s.holds.adopt({{"c", "ns", "p1", "u1"}, "n1", {0}, 0, 1});
	CHECK(round(5) == 1);
	s.holds.release({"c", "ns", "p1", "u1"});
	CHECK(round(30) == 1);
	fake.saves_power = false;
}

TEST_CASE("masks go with the Slurm thread's next round, whoever freed what they stood for, and the scheduler is woken")
{
	Stand s;
	s.holds.adopt({{"c", "ns", "p1", "u1"}, "n1", {0}, 0, 1});
	s.holds.release({"c", "ns", "p1", "u1"}); // and nobody says so
	fake.active = false;
	s.round();
	CHECK(s.holds.masks());
	fake.active = true;
	const int wakes = fake.wakes;
	s.round();
	CHECK_FALSE(s.holds.masks());
	CHECK(fake.wakes == wakes + 1);
	s.round();
	CHECK(fake.wakes == wakes + 1);
}

TEST_CASE("Slurm is told once of masks that are others, and woken by those that go")
{
	Stand s;
	s.round();
	CHECK(fake.tells == 0);
	s.holds.hold_foreign(of_three_threads());
	s.round();
	s.round();
	CHECK(fake.tells == 1);
	CHECK(fake.wakes == 0);
	s.holds.release(of_three_threads().key);
	s.round();
	s.round();
	CHECK(fake.tells == 2);
	CHECK(fake.wakes == 1);
}

TEST_CASE("Slurm is told of a mask that goes though nobody had told it that it came")
{
	Stand s;
	s.holds.hold_foreign(of_three_threads()); // or the saved ledger has it
	s.holds.release(of_three_threads().key);
	s.round();
	CHECK(fake.tells == 1);
}

TEST_CASE("backfill is told again of what changed during one of its turns, when that is over")
{
	Stand s;
	s.holds.hold_foreign(of_three_threads());
	fake.in_backfill = true;
	const bool job = GENERATE(false, true);
	if (job)
		s.submit(1);
	else
		s.round();
	const int tells = fake.tells;
	s.clock.wall += 5;
	s.round(); // it still looks
	CHECK(fake.tells == tells);
	fake.in_backfill = false;
	s.round();
	CHECK(fake.tells == tells + 1);
	CHECK(fake.node_update == s.clock.wall);
	s.round();
	CHECK(fake.tells == tells + 1);
}

TEST_CASE("when a node comes back the best jobs may run there first, and when it goes they are the last to know")
{
	Stand s;
	std::vector<Job> jobs;
	for (int n = 1; n <= 6; n++)
		jobs.push_back(*s.submit(n).job);
	for (std::size_t i = 0; i < jobs.size(); i++)
		jobs[i].priority = std::vector<std::uint32_t>{30, 10, 40, 20, 40, 50}[i];
	std::vector<std::uint32_t> order;
	auto exclude = [&](const std::string &before, const std::string &now) {
		order.clear();
		fake.excluded.clear();
		for (Job &j : jobs) {
			j.excluded_nodes = before;
			s.port->exclude({"c", "ns", "p", "u" + std::to_string(j.ref.id)}, j, now, [](const SlurmReply &) {});
		}
		s.round();
		for (auto id : fake.excluded)
			order.push_back(id - jobs[0].ref.id + 1);
	};
	exclude("n1,n2,n1", "n2,n2");
	CHECK(order == std::vector<std::uint32_t>{6, 3, 5, 1, 4, 2});
	exclude("n[1-3],n1", "n[1-2],n1");
	CHECK(order == std::vector<std::uint32_t>{6, 3, 5, 1, 4, 2});
	exclude("", "n1,n1");
	CHECK(order == std::vector<std::uint32_t>{2, 4, 1, 5, 3, 6});
}

TEST_CASE("a parked controller runs nothing and loses nothing")
{
	Stand s;
	s.round();
	fake.active = false;
	const int locks = fake.locks;
	s.submit(1);
	CHECK(fake.locks == locks);
	fake.active = true;
	s.round();
	CHECK(fake.submits == 1);
}

TEST_CASE("when slurmctld ends no more is done under its locks than what was begun, and nothing is lost")
{
	Stand s;
	s.round();
	int answers = 0;
	for (int n = 1; n <= 3; n++) {
		JobRequest r;
		r.key = {"c", "ns", "p" + std::to_string(n), "u" + std::to_string(n)};
		s.port->submit(r, [&](const SlurmReply &) { answers++; });
	}
	fake.ends_with_next_submit = true;
	s.round();
	CHECK(fake.submits == 1);
	CHECK(answers == 1);
	fake.active = true; // a reconfigure of Slurm 24.11 that failed
	s.round();
	CHECK(fake.submits == 3);

	for (std::uint32_t id = 10; id < 3010; id++)
		fake.jobs[id] = {.mark = "k8s:c/ns/p/u" + std::to_string(id), .node = {}};
	s.worker.reread();
	s.round();
	s.clock.wall++;
	fake.job_update = s.clock.wall;
	fake.finds = 0;
	fake.ends_with_next_find = true;
	s.round();
	CHECK(fake.finds == 1000); // one hold of the locks
}

TEST_CASE("a detached engine hears nothing more")
{
	Stand s;
	s.round();
	s.port->submit({.key = {"c", "ns", "p", "u"}}, [](const SlurmReply &) { FAIL("called"); });
	s.worker.detach("c");
	s.round();
	CHECK(fake.submits == 0);
}

TEST_CASE("what a detached engine still asks for is not done, and its successor gets no answer to it")
{
	Stand s;
	s.round();
	auto node_port = s.worker.node_port(s.worker.seat("c"));
	const auto seat = s.worker.seat("c");
	const auto never = [](const SlurmReply &) { FAIL("called"); };
	s.worker.detach("c");
	if (GENERATE(true, false)) // it is slow to end
		s.worker.attach(s.worker.seat("c"), std::make_shared<Listener>());
	s.port->submit({.key = {"c", "ns", "p", "u"}}, never);
	s.port->end({"c", "ns", "p", "u"}, {7, 1000}, {}, never);
	s.port->exclude({"c", "ns", "p", "u"}, {}, "n1", never);
	node_port->change_node({"n1", SK8_NODE_DRAIN, "k8s: cordoned", ""}, never);
	s.worker.end_native(seat, {7, 1000}, false, "its pod was deleted", never);
	s.worker.attach(s.worker.seat("c"), std::make_shared<Listener>());
	CHECK(s.worker.waiting() == 0);
	s.round();
	CHECK(fake.submits == 0);

	bool answered = false;
	s.worker.port(s.worker.seat("c"))->submit({.key = {"c", "ns", "p", "u"}}, [&](const SlurmReply &) { answered = true; });
	s.round();
	CHECK(answered);
}

TEST_CASE("a job in the gate is given devices by number")
{
	Stand s;
	SlurmReply reply;
	s.worker.set_devices(s.worker.seat("c"), {7, 1000}, {"n1", "gpu", {0, 3}}, [&](const SlurmReply &r) { reply = r; });
	s.round();
	CHECK(fake.native_end == "7 1000 n1 gpu 0 3");
	CHECK(reply.ok);
}

TEST_CASE("a job of Slurm's own is ended with the reason, and the answer says whether it waits in the queue again")
{
	Stand s;
	const bool requeue = GENERATE(true, false);
	SlurmReply reply;
	s.worker.end_native(s.worker.seat("c"), {7, 1000}, requeue, "its pod was deleted", [&](const SlurmReply &r) { reply = r; });
	CHECK(s.worker.waiting() == 1);
	s.round();
	CHECK(fake.native_end == "7 1000 its pod was deleted");
	CHECK(reply.ok);
	CHECK(reply.requeued == requeue);
	CHECK(fake.wakes == 1);
}

TEST_CASE("an srun in the gate is told two seconds before its job is ended, which is answered then")
{
	Stand s;
	fake.srun = 7;
	int answers = 0;
	s.worker.end_native(s.worker.seat("c"), {7, 1000}, false, "no such image", [&](const SlurmReply &r) { answers += r.ok ? 1 : 100; });
	for (int k = 0; k < 8; k++) {
		s.round();
		CHECK(std::exchange(fake.native_end, "") == (k == 0 ? "told: 7 1000 no such image" : ""));
		CHECK(answers == 0);
	}
	s.round();
	CHECK(fake.native_end == "7 1000 no such image");
	CHECK(answers == 1);
}

TEST_CASE("a job whose srun has been told is not ended for an engine that is detached meanwhile")
{
	Stand s;
	fake.srun = 7;
	s.worker.end_native(s.worker.seat("c"), {7, 1000}, false, "no such image", [](const SlurmReply &) { FAIL("called"); });
	s.round();
	s.worker.detach("c");
	s.clock.millis += 2'000;
	s.round();
	CHECK(fake.native_end == "told: 7 1000 no such image");
}

TEST_CASE("an srun in the gate is told two seconds before its job is refused, unless nobody waits for that answer any more")
{
	Stand s;
	fake.srun = 7;
	int wanted = GENERATE(0, 1);
	s.worker.answer_gate({7, 1000}, {.open = false, .why = "no room"}, [&] { return wanted-- > 0; });
	for (int k = 0; k < 8; k++) {
		s.round();
		CHECK(fake.answered == "told: no room, ");
	}
	const std::string at_last = wanted ? "told: no room, 7 refused, " : "told: no room, ";
	for (int k = 0; k < 8; k++)
		s.round();
	CHECK(fake.answered == at_last);
}

TEST_CASE("an answer of the gate that a stopped worker has not told is told by the next one, and none twice")
{
	Stand first;
	Gate *told_by = nullptr;
	Gate gate([&](JobRef job, const GateAnswer &answer) {
		first.worker.answer_gate(job, answer, [&, job] { return told_by->told(job); });
	});
	told_by = &gate;
	gate.set_clusters({"c"});
	for (const std::uint32_t id : {7u, 8u}) {
		auto job = std::make_shared<NativeJob>();
		job->ref = {id, 1000};
		REQUIRE(gate.arrive(job));
	}
	gate.vote("c", {7, 1000}, {});
	first.round();
	CHECK(std::exchange(fake.answered, "") == "7 open, ");
	gate.vote("c", {8, 1000}, {.open = false, .why = "no room"});
	gate.pause(); // slurmctld ends, and the first worker with it
	REQUIRE(gate.untold().size() == 1);

	Stand next;
	for (const auto &[job, answer] : gate.untold())
		next.worker.answer_gate(job, answer, [&, ref = job] { return gate.told(ref); });
	next.round();
	CHECK(fake.answered == "8 refused, ");
	first.round(); // not stopped after all
	CHECK(fake.answered == "8 refused, ");
	CHECK(gate.untold().empty());
}

TEST_CASE("a job is let out when its nodes have registered, of those that never do after twenty seconds, and refused or ended at once")
{
	Stand s;
	bool wanted = true;
	const auto answer = [&](const GateAnswer &a) { s.worker.answer_gate({7, 1000}, a, [&] { return std::exchange(wanted, false); }); };
	fake.unregistered = 7;
	SECTION("registered")
	{
		answer({});
		s.round();
		CHECK(fake.answered.empty());
		fake.unregistered = 0;
		s.clock.millis += 250;
		s.round();
		CHECK(fake.answered == "7 open, ");
	}
	SECTION("never")
	{
		answer({});
		for (int seconds = 0; seconds < 20; seconds++, s.clock.millis += 1'000) {
			s.round();
			CHECK(fake.answered.empty());
		}
		s.round();
		CHECK(fake.answered == "7 open, ");
	}
	SECTION("long after a start")
	{
		s.round();
		s.clock.millis += 20'000;
		answer({});
		s.round();
		CHECK(fake.answered == "7 open, ");
	}
	SECTION("refused")
	{
		answer({.open = false, .why = "no room"});
		s.round();
		CHECK(fake.answered == "7 refused, ");
	}
	SECTION("told by another worker meanwhile")
	{
		answer({});
		s.round();
		wanted = false;
		fake.unregistered = 0;
		s.clock.millis += 250;
		s.round();
		CHECK(fake.answered.empty());
	}
	for (int k = 0; k < 100; k++, s.clock.millis += 1'000)
		s.round();
	CHECK(fake.answered.size() <= std::string("7 refused, ").size());
}

TEST_CASE("what the Slurm thread is to do later it does when its time has come, each once, and those first that come first")
{
	Stand s;
	std::string done;
	s.worker.after(Millis(3'000), [&] { done += "late "; });
	s.worker.after(Millis(1'000), [&] {
		done += "early ";
		s.worker.after(Millis(0), [&] { done += "then "; });
	});
	s.worker.post([&] { done += "now "; });
	s.round();
	CHECK(done == "now ");
	s.clock.wall += 1;
	fake.active = false; // also in a standby
	s.round();
	CHECK(done == "now early ");
	s.round();
	CHECK(done == "now early then ");
	s.clock.wall += 2;
	s.round();
	s.round();
	CHECK(done == "now early then late ");
}

TEST_CASE("two runs of a job of Slurm's own are watched to the end of each, at whatever time they end")
{
	Stand s;
	s.round();
	s.listener->natives = true;
	fake.natives[7] = {1000, "n1"};
	s.worker.watch_end({7, 1000});
	s.round();
	CHECK(std::exchange(s.listener->left, "") == "7/1000: n1, ");
	fake.natives[7] = {1002, "n2"};
	s.worker.watch_end({7, 1002}); // before anybody has looked
	s.round();
	CHECK(std::exchange(s.listener->left, "") == "7/1000:, 7/1002: n2, ");
	fake.natives.clear();
	s.round();
	CHECK(s.listener->left == "7/1002:, ");
}

TEST_CASE("for an engine that is late one list of nodes waits, the newest, however often Slurm has news of them")
{
	Stand s;
	s.round();
	s.listener->late = true;
	s.listener->lists = 0;
	for (int i = 0; i < 100; i++) {
		fake.reason = "reason " + std::to_string(i);
		fake.node_update = ++s.clock.wall;
		s.round();
	}
	CHECK(s.listener->waiting.size() == 1);
	s.listener->catch_up();
	CHECK(s.listener->lists == 1);
	CHECK(s.listener->nodes.at(0).reason == "reason 99");
	fake.reason = "the next";
	fake.node_update = ++s.clock.wall;
	s.round();
	s.listener->catch_up();
	CHECK(s.listener->nodes.at(0).reason == "the next");
}

TEST_CASE("an engine that is late hears of nodes as they are after what the answer to its command said of them")
{
	Stand s;
	s.round();
	s.listener->late = true;
	fake.node_update = ++s.clock.wall;
	s.round();
	std::string told;
	int lists_before = -1;
	s.worker.node_port(s.worker.seat("c"))->change_node({"n1", SK8_NODE_DRAIN, "k8s: cordoned", ""}, [&](const SlurmReply &r) {
		told = r.node->reason;
		lists_before = s.listener->lists;
	});
	s.round();
	fake.reason.clear(); // scontrol update State=RESUME
	fake.node_update = ++s.clock.wall;
	s.round();
	const int lists = s.listener->lists;
	s.listener->catch_up();
	CHECK(told == "k8s: cordoned");
	CHECK(lists_before == lists); // what was older is not told at all
	CHECK(s.listener->lists == lists + 1);
	CHECK(s.listener->nodes.at(0).reason.empty());
}

TEST_CASE("a new engine hears of the nodes though its predecessor never ran what it was told of them")
{
	Stand s;
	s.round();
	s.listener->late = true;
	fake.node_update = ++s.clock.wall;
	s.round();
	auto next = std::make_shared<Listener>();
	s.worker.detach("c");
	s.worker.attach(s.worker.seat("c"), next);
	s.round();
	CHECK(next->nodes.size() == 1);
}

TEST_CASE("a listener that is attached anew hears of the nodes though what it was told of them before never runs")
{
	Stand s;
	s.round();
	s.listener->late = true;
	fake.node_update = ++s.clock.wall;
	s.round();
	const auto of_former = std::exchange(s.listener->waiting, {});
	CHECK(of_former.size() == 1);
	s.worker.detach("c");
	s.worker.attach(s.worker.seat("c"), s.listener);
	s.listener->lists = 0;
	s.round();
	s.listener->catch_up();
	CHECK(s.listener->lists == 1);
}

TEST_CASE("nodes are told again after what was told of them was dropped")
{
	Stand s;
	s.round();
	s.listener->late = true;
	fake.node_update = ++s.clock.wall;
	s.round();
	s.listener->waiting.clear(); // a bug of one that ran before, say
	fake.node_update = ++s.clock.wall;
	s.round();
	CHECK(s.listener->waiting.size() == 1);
}

TEST_CASE("while commands come Slurm's jobs and nodes are looked at once in a quarter of a second, and commands go on")
{
	Stand s;
	s.submit(0);
	s.clock.millis += 250;
	fake.job_update = fake.node_update = s.clock.wall;
	fake.finds = s.listener->lists = 0;
	for (int n = 1; n <= 500; n++)
		s.port->submit({.key = {"c", "ns", "p" + std::to_string(n), "u" + std::to_string(n)}}, [](const SlurmReply &) {});
	int rounds = 0;
	while (s.worker.waiting() > 0) {
		s.worker.round();
		rounds++;
	}
	CHECK(rounds == 10);
	CHECK(fake.submits == 501);
	CHECK(s.listener->lists == 1);
	CHECK(s.worker.look_in() == Millis(250));
	s.clock.millis += 249;
	s.worker.round();
	CHECK(s.listener->lists == 1);
	CHECK(s.worker.look_in() == Millis(1));
	s.clock.millis += 1;
	s.worker.round();
	CHECK(s.listener->lists == 2);
	CHECK(s.worker.look_in() == Millis(0));
}

TEST_CASE("a look that held slurmctld's locks for long is followed by ten times as long a rest, but for a reread")
{
	Stand s;
	s.look_for_long(80);
	s.clock.millis += 799;
	s.worker.round();
	CHECK(s.listener->lists == 0);
	s.worker.reread();
	s.worker.round();
	CHECK(s.listener->lists == 1);
	s.clock.millis += 250;
	s.worker.round();
	CHECK(s.listener->lists == 2); // that one was short
}

TEST_CASE("a rest between looks takes two seconds at most")
{
	Stand s;
	s.look_for_long(900);
	s.clock.millis += 1'999;
	s.worker.round();
	CHECK(s.listener->lists == 0);
	s.clock.millis += 1;
	s.worker.round();
	CHECK(s.listener->lists == 1);
}

TEST_CASE("news that come after quiet are looked at in the next round, however soon that is")
{
	Stand s;
	s.round();
	s.clock.wall += 2;
	s.worker.round(); // its stamps are older: nothing is looked at
	fake.node_update = s.clock.wall;
	s.listener->lists = 0;
	s.worker.round();
	CHECK(s.listener->lists == 1);
}
