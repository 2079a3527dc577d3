// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/slurm_worker.h"

#include <algorithm>

#include "lib/base/guard.h"
#include "lib/base/node_list.h"
#include "lib/core/slurm_lock.h"

namespace sk8::core {

static constexpr std::size_t max_batch = 50;
static constexpr Millis scan_interval{250};
static constexpr int scan_rest = 10; // times what it held the locks,
static constexpr Millis longest_rest{2'000}; // but no longer
static constexpr std::size_t scan_chunk = 1000; // jobs per lock

// ---- the engines' side ----

class SlurmWorker::Port final : public SlurmPort {
public:
	Port(SlurmWorker &worker, Seat seat) : worker_(worker), seat_(std::move(seat)) {}

	void submit(JobRequest request, Done done) override
	{
		worker_.enqueue({seat_, Submit{std::move(request)}, std::move(done)});
	}
	void end(const PodKey &key, JobRef job, JobEnd end, Done done) override
	{
		worker_.enqueue({seat_, End{key, job, std::move(end)}, std::move(done)});
	}
	void exclude(const PodKey &key, const Job &job, std::string nodes, Done done) override
	{
		const Turn turn = turn_of(job, nodes);
		worker_.enqueue({seat_, Exclude{key, job.ref, std::move(nodes), turn}, std::move(done)});
	}
	void set_devices(JobRef job, DeviceChange change, Done done) override
	{
		worker_.set_devices(seat_, job, std::move(change), std::move(done));
	}
	void wake_scheduler() override { worker_.wake_scheduler(); }

private:
	// The scheduler comes in between: who may run on a node again before better jobs may
	// would be started before them.
	static Turn turn_of(const Job &job, const std::string &nodes)
	{
		const bool fewer = count_nodes(nodes) < count_nodes(job.excluded_nodes);
		const std::int64_t sign = fewer ? -1 : 1;
		return {fewer, sign * job.priority, -sign * job.ref.id};
	}

	SlurmWorker &worker_;
	const Seat seat_;
};

SlurmWorker::SlurmWorker(const sk8_slurm_ops &ops, HoldTable &holds, const Clock &clock)
	: ops_(ops), holds_(holds), clock_(clock)
{
}

std::unique_ptr<SlurmPort> SlurmWorker::port(const Seat &who)
{
	return std::make_unique<Port>(*this, who);
}

void SlurmWorker::attach(const Seat &who, std::shared_ptr<SlurmListener> l)
{
	std::lock_guard lock(mutex_);
	if (!is_seated(who))
		return;
	listeners_[who.cluster] = std::move(l);
	reread_ = true;
	wake_.notify_one();
}

void SlurmWorker::detach(const std::string &cluster)
{
	std::lock_guard lock(mutex_);
	listeners_.erase(cluster);
	seats_[cluster]++;
	auto of_cluster = [&](const Command &c) { return c.who.cluster == cluster; };
	std::erase_if(ends_, of_cluster);
	std::erase_if(submits_, of_cluster);
	std::erase_if(excludes_, [&](const auto &entry) { return of_cluster(entry.second); });
}

SlurmWorker::Seat SlurmWorker::seat(const std::string &cluster) const
{
	std::lock_guard lock(mutex_);
	auto it = seats_.find(cluster);
	return {cluster, it == seats_.end() ? 0 : it->second};
}

// mutex_ is held.
bool SlurmWorker::is_seated(const Seat &who) const
{
	auto it = seats_.find(who.cluster);
	return who.number == (it == seats_.end() ? 0 : it->second);
}

void SlurmWorker::enqueue(Command c)
{
	std::lock_guard lock(mutex_);
	if (!is_seated(c.who))
		return;
	put(std::move(c), false);
	wake_.notify_one();
}

// mutex_ is held. first: it has had its turn, and there was no time left.
void SlurmWorker::put(Command c, bool first)
{
	if (const auto *e = std::get_if<Exclude>(&c.what)) {
		const Turn turn = e->turn;
		excludes_.emplace(turn, std::move(c));
		return;
	}
	auto &queue = std::holds_alternative<Submit>(c.what) ? submits_ : ends_;
	queue.insert(first ? queue.begin() : queue.end(), std::move(c));
}

// mutex_ is held.
bool SlurmWorker::commands_wait() const
{
	return !ends_.empty() || !submits_.empty() || !excludes_.empty();
}

void SlurmWorker::wake_scheduler()
{
	std::lock_guard lock(mutex_);
	round_wanted_ = true;
	wake_.notify_one();
}

void SlurmWorker::post(std::function<void()> f)
{
	std::lock_guard lock(mutex_);
	posted_.push_back(std::move(f));
	wake_.notify_one();
}

void SlurmWorker::after(Millis delay, std::function<void()> f)
{
	std::lock_guard lock(mutex_);
	later_.emplace(clock_.monotonic() + delay, std::move(f));
}

std::optional<Millis> SlurmWorker::later_in() const
{
	std::lock_guard lock(mutex_);
	if (later_.empty())
		return std::nullopt;
	return std::max(later_.begin()->first - clock_.monotonic(), Millis(0));
}

std::vector<std::function<void()>> SlurmWorker::take_posted()
{
	std::lock_guard lock(mutex_);
	std::vector<std::function<void()>> out;
	out.swap(posted_);
	const auto end = later_.upper_bound(clock_.monotonic());
	for (auto it = later_.begin(); it != end; ++it)
		out.push_back(std::move(it->second));
	later_.erase(later_.begin(), end);
	return out;
}

void SlurmWorker::reread()
{
	std::lock_guard lock(mutex_);
	reread_ = true;
	wake_.notify_one();
}

std::size_t SlurmWorker::waiting() const
{
	std::lock_guard lock(mutex_);
	return ends_.size() + submits_.size() + excludes_.size();
}

void SlurmWorker::stop()
{
	std::lock_guard lock(mutex_);
	stop_ = true;
	wake_.notify_one();
}

// ---- the thread ----

bool SlurmWorker::due() const
{
	return stop_ || !posted_.empty() || reread_ || round_wanted_ || commands_wait();
}

void SlurmWorker::run()
{
	for (;;) {
		const bool active = ops_.active(); // not with mutex_ held: hooks take that under Slurm's locks
		{
			std::unique_lock lock(mutex_);
			if (!due() || !active)
				wake_.wait_for(lock, active && scan_left_ ? std::min(look_in(), scan_interval) : scan_interval);
			if (stop_)
				return;
		}
		guard("Slurm thread", [this] { round(); });
	}
}

void SlurmWorker::round()
{
	for (const auto &f : take_posted())
		guard("Slurm thread", f); // each: none is lost for another one
	if (!ops_.active()) {
		in_charge_since_.reset();
		return; // standby or shutting down: nothing is written, commands keep
	}
	if (!in_charge_since_)
		in_charge_since_ = clock_.monotonic();
	bool reread, work;
	{
		std::lock_guard lock(mutex_);
		reread = std::exchange(reread_, false);
		work = commands_wait();
		round_wanted_ = false; // a wish for a round, and for masks_are_news()
	}
	if (reread)
		read_all();
	if (work || masks_are_news())
		run_commands();
	keep_nodes_up();
	scan(reread);
}

Millis SlurmWorker::look_in() const
{
	return scan_left_ ? std::max(scan_at_ - clock_.monotonic(), Millis(1)) : Millis(0);
}

// Commands, and whoever wakes the scheduler, come so often under load that slurmctld's locks would nearly always be held.
void SlurmWorker::scan(bool at_once)
{
	const Millis begin = clock_.monotonic();
	scan_left_ = !at_once && begin < scan_at_;
	if (scan_left_)
		return;
	scan_held_us_ = 0;
	scan_jobs();
	Posts posts;
	look_for_others(posts);
	scan_nodes(posts);
	scan_natives(posts);
	send(std::move(posts));
	if (scan_held_us_ > 0) // else there was no news, and the next may come at once
		scan_at_ = std::max(begin + scan_interval, clock_.monotonic() + std::min(Millis(scan_held_us_ * scan_rest / 1000), longest_rest));
}

std::vector<SlurmWorker::Command> SlurmWorker::take_batch()
{
	std::lock_guard lock(mutex_);
	std::vector<Command> batch;
	for (auto *queue : {&ends_, &submits_}) {
		while (!queue->empty() && batch.size() < max_batch) {
			batch.push_back(std::move(queue->front()));
			queue->pop_front();
		}
	}
	while (!excludes_.empty() && batch.size() < max_batch)
		batch.push_back(std::move(excludes_.extract(excludes_.begin()).mapped()));
	return batch;
}

void SlurmWorker::run_commands()
{
	std::vector<Command> batch = take_batch();
	Posts posts;
	std::size_t ran = 0;
	{
		SlurmLock lock(ops_, clock_, true);
		lock.changed = lock.masks = holds_.let_masks_go();
		for (; ran < batch.size() && !lock.used_up(); ran++) {
			SlurmReply reply;
			run(batch[ran], reply);
			lock.changed = true;
			posts[batch[ran].who.cluster].push_back(
				[done = std::move(batch[ran].done), reply = std::move(reply)](SlurmListener &) { done(reply); });
		}
		tell_of_masks(lock);
	}
	{
		// What did not fit into this hold goes back to the front.
		std::lock_guard lock(mutex_);
		for (std::size_t i = batch.size(); i-- > ran;)
			put(std::move(batch[i]), true);
	}
	for (const auto &[cluster, answers] : posts)
		node_posts_[cluster].followed = true;
	send(std::move(posts));
}

void SlurmWorker::run(const Command &c, SlurmReply &reply)
{
	guard("Slurm command", [&] { std::visit([&](const auto &what) { run(what, reply); }, c.what); });
}

// ---- what Slurm knows ----

void SlurmWorker::forget(std::uint32_t id)
{
	const auto known = live_.find(id);
	if (known == live_.end())
		return;
	const auto [from, to] = ids_.equal_range(known->second.key.id());
	for (auto it = from; it != to; ++it)
		if (it->second == id) {
			ids_.erase(it);
			break;
		}
	live_.erase(known);
}

void SlurmWorker::remember(const PodKey &key, const JobPtr &job)
{
	const auto known = live_.find(job->ref.id);
	const bool told = known != live_.end() && known->second.job->preempted();
	forget(job->ref.id);
	if (job->ended())
		return;
	if (job->preempted() && !told)
		enqueue({seat(key.cluster), Spare{key, job->ref}, [](const SlurmReply &) {}});
	live_[job->ref.id] = {key, job};
	ids_.emplace(key.id(), job->ref.id);
}

// A start, a takeover, a reconfigure, or a new engine: everything, from scratch.
void SlurmWorker::read_all()
{
	std::vector<std::pair<PodKey, JobPtr>> jobs, running;
	jobs_seen_ = clock_.wall_seconds();
	nodes_seen_ = 0;
	{
		SlurmLock lock(ops_, clock_, false);
		auto each = [](void *arg, const sk8_job *j) {
			auto &all = *static_cast<std::vector<std::pair<PodKey, JobPtr>> *>(arg);
			guard("job list", [&] {
				if (auto key = PodKey::from_mark(j->mark))
					all.emplace_back(std::move(*key), share(job_from_abi(*j)));
			});
		};
		ops_.each_job(each, &jobs);
		for (const auto &entry : jobs)
			if (entry.second->running())
				running.push_back(entry);
		holds_.jobs_running(running); // under the lock: no hook comes in between
		read_natives();
	}
	live_.clear();
	ids_.clear();
	for (const auto &[key, job] : jobs)
		remember(key, job);
	others_seen_ = jobs_seen_;
	plan_look_for_others(Millis(0));

	std::lock_guard lock(mutex_);
	for (const auto &[cluster, l] : listeners_)
		l->post([to = l.get(), jobs] { to->jobs_replaced(jobs); });
}

void SlurmWorker::scan_jobs()
{
	const std::int64_t now = clock_.wall_seconds();
	if (live_.empty() || !news(ops_.last_job_update(), jobs_seen_, now))
		return;
	jobs_seen_ = now;

	std::vector<std::uint32_t> ids;
	for (const auto &[job_id, known] : live_)
		ids.push_back(job_id);
	for (std::size_t from = 0; from < ids.size() && ops_.active(); from += scan_chunk) {
		Posts posts;
		{
			SlurmLock lock(ops_, clock_, false, &scan_held_us_);
			for (std::size_t i = from; i < std::min(ids.size(), from + scan_chunk); i++)
				look_at(ids[i], posts);
		}
		send(std::move(posts));
	}
}

void SlurmWorker::look_at(std::uint32_t job_id, Posts &posts)
{
	const auto at = live_.find(job_id);
	sk8_job found{};
	if (!ops_.find(job_id, &found) || found.submit_time != at->second.job->ref.submit_time) {
		const Known known = at->second;
		forget(job_id);
		posts[known.key.cluster].push_back(
			[key = known.key, ref = known.job->ref](SlurmListener &l) { l.job_purged(key, ref); });
		return;
	}
	Job now = job_from_abi(found);
	if (now == *at->second.job)
		return;
	const PodKey key = at->second.key; // remember() may forget it
	const JobPtr job = share(std::move(now));
	remember(key, job);
	posts[key.cluster].push_back([key, job](SlurmListener &l) { l.job_changed(key, job); });
}

// Jobs that we did not make have our mark by an administrator's hand, or of another
// slurmctld. While they are pending no hook tells of them, so all of Slurm's jobs are walked:
// not often, and for no more than a hundredth of the time.
static constexpr Millis others_interval{10'000};
static constexpr int rest_for_each = 100;

void SlurmWorker::plan_look_for_others(Millis took)
{
	others_at_ = clock_.monotonic() + std::max(others_interval, took * rest_for_each);
}

void SlurmWorker::look_for_others(Posts &posts)
{
	const Millis begin = clock_.monotonic();
	const std::int64_t now = clock_.wall_seconds();
	if (begin < others_at_ || !news(ops_.last_job_update(), others_seen_, now))
		return;
	others_seen_ = now;
	struct Walk {
		const SlurmWorker &worker;
		std::vector<std::pair<PodKey, JobPtr>> found;
	} walk{*this, {}};
	Millis locked;
	{
		SlurmLock lock(ops_, clock_, false, &scan_held_us_);
		locked = clock_.monotonic();
		ops_.each_job(
			[](void *arg, const sk8_job *j) {
				auto &w = *static_cast<Walk *>(arg);
				guard("job list", [&] {
					const auto it = w.worker.live_.find(j->job_id);
					const bool known = it != w.worker.live_.end() && it->second.job->ref.submit_time == j->submit_time;
					auto key = known || j->state >= SK8_JOB_COMPLETED ? std::nullopt : PodKey::from_mark(j->mark);
					if (key)
						w.found.emplace_back(std::move(*key), share(job_from_abi(*j)));
				});
			},
			&walk);
	}
	plan_look_for_others(clock_.monotonic() - locked);
	for (const auto &[key, job] : walk.found) {
		remember(key, job);
		posts[key.cluster].push_back([key = key, job = job](SlurmListener &l) { l.job_changed(key, job); });
	}
}

std::shared_ptr<SlurmListener> SlurmWorker::listener(const std::string &cluster)
{
	std::lock_guard lock(mutex_);
	auto it = listeners_.find(cluster);
	return it == listeners_.end() ? nullptr : it->second;
}

// One post per engine, so that its end_of_turn() serves them all.
void SlurmWorker::send(Posts &&posts)
{
	for (auto &[cluster, calls] : posts) {
		if (auto l = listener(cluster))
			l->post([to = l.get(), calls = std::move(calls)] {
				for (const auto &call : calls)
					call(*to);
			});
	}
}

} // namespace sk8::core
