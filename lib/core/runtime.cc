// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/runtime.h"

#include <algorithm>
#include <set>

#include "lib/base/doubling.h"
#include "lib/base/guard.h"
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/core/metrics_table.h"
#include "lib/core/settings_in_force.h"

namespace sk8::core {

static constexpr Millis longest_shutdown{1'000};

std::shared_ptr<ClusterEngine> make_engine(const ClusterSettings &settings, const sk8_host &host, HoldTable &holds, Gate &gate,
					   std::shared_ptr<SlurmWorker> worker)
{
	return std::make_shared<ClusterEngine>(settings, host, holds, gate, std::move(worker));
}

Runtime::Runtime(const sk8_host &host, MakeEngine make, Millis wait)
	: host_(host), make_(std::move(make)), longest_wait_(wait), gate_([this](JobRef job, const GateAnswer &answer) { answer_gate(job, answer); },
			    holds_.taken_by(), holds_.beside())
{
	kube::http_global_init(); // from a plugin's init(): before there are threads
	metrics();
}

// ---- start ----

// slurmctld's locks are held, no job runs through job_test: the only moment where
// the saved ledger can still be in time.
void Runtime::node_init(bool goes_on)
{
	{
		std::lock_guard lock(mutex_);
		slurm_nodes_ = slurm_nodes();
		if (!parked_)
			return; // reconfigure of the active controller: memory knows better
	}
	if (!goes_on)
		gate_.forget(); // Slurm calls for those that wait once it has read its jobs
	load_ledgers();
}

void Runtime::reconfigure()
{
	std::lock_guard lock(mutex_);
	if (std::exchange(parked_, false)) {
		started_at_ = clock_.wall_seconds();
		restore_features();
	}
	if (!worker_) {
		worker_ = std::make_shared<SlurmWorker>(*host_.ops, holds_, clock_);
		auto thread = Thread::start("sk8-slurm", [worker = worker_] { worker->run(); });
		if (!thread) {
			log_error("no Slurm thread: %s", thread.error().message.c_str());
			worker_.reset();
			for (const auto &[cluster, wait] : holds_.closed())
				stop_waiting(cluster, "cannot tell");
			holds_.let_masks_go(); // slurmctld's locks are held, and nobody else does it
			return;
		}
		worker_thread_ = std::move(*thread);
		for (const auto &[cluster, wait] : holds_.closed())
			stop_waiting_later(*worker_, cluster, wait);
		for (const auto &[job, answer] : gate_.untold())
			tell_slurm(*worker_, job, answer);
	}
	gate_.go_on();
	worker_->reread();
	worker_->post([this] { reload(); }); // reads a file, starts threads: not in a hook
}

// What the Slurm thread started is handed to shutdown() by keep; false if that has
// been already and cannot see it any more: then it is the caller's to stop.
bool Runtime::unless_parked(const std::function<void()> &keep)
{
	std::lock_guard lock(mutex_);
	if (!parked_)
		keep();
	return !parked_;
}

// ---- slurm-k8s(1) ----

// Slurm thread. Without it everything else works: an error is no reason to stop.
void Runtime::start_control()
{
	{
		std::lock_guard lock(mutex_);
		if (parked_ || control_)
			return;
	}
	auto control = std::make_shared<Control>(host_, holds_, [this] { return state(); });
	auto server = std::make_shared<ControlServer>(
		host_.state_dir, host_.slurm_uid, clock_,
		[control](const ControlRequest &request) { return control->handle(request); });
	auto thread = Thread::start("sk8-control", [server] { server->run(); });
	if (!thread) {
		log_error("slurm-k8s(1) cannot be answered: %s", thread.error().message.c_str());
		return;
	}
	if (unless_parked([&] {
			control_ = server;
			control_thread_ = std::move(*thread);
		}))
		return;
	server->stop();
	thread->join_or_leave(longest_shutdown);
}

RuntimeState Runtime::state()
{
	std::lock_guard lock(mutex_);
	RuntimeState out{parked_, {}, worker_, started_at_, config_read_at_, config_error_, not_started_};
	for (const auto &[name, engine] : engines_)
		out.engines.push_back(engine);
	return out;
}

// ---- configuration (Slurm thread) ----

static void tell_gate(Gate &gate, const std::vector<ClusterSettings> &clusters)
{
	std::set<std::string> reserving, emptying, containing;
	for (const auto &c : clusters) {
		if (c.reserves())
			reserving.insert(c.name);
		if (c.nodes.exclusive.on())
			emptying.insert(c.name);
		if (c.has_containers())
			containing.insert(c.name);
	}
	gate.set_clusters(std::move(reserving), std::move(emptying), std::move(containing));
}

void Runtime::complete_tokens(const TokenSettings &settings)
{
	std::lock_guard lock(mutex_);
	token_partitions_ = settings.partitions;
}

bool Runtime::completes_tokens(std::string_view partition)
{
	std::lock_guard lock(mutex_);
	return std::ranges::any_of(token_partitions_, [&](const auto &glob) { return glob_match(glob, partition); });
}

// Nothing: those of the engines stay, or there are none.
std::optional<Settings> Runtime::settings_to_use()
{
	auto found = find_settings(host_.config_path, host_.state_dir, host_.slurm_uid);
	{
		std::lock_guard lock(mutex_);
		config_read_at_ = clock_.wall_seconds();
		config_error_ = found.trouble;
	}
	if (found.trouble.empty()) {
		if (const auto kept = keep_settings(found.text, host_.state_dir, host_.slurm_uid); !kept)
			log_error("no copy of %s is kept, so nothing is in force if it has a mistake when slurmctld starts: %s", host_.config_path,
				  kept.error().message.c_str());
		return std::move(*found.settings);
	}
	for (auto line : split(found.trouble, '\n'))
		log_error("%.*s", static_cast<int>(line.size()), line.data());
	const RuntimeState now = state();
	const bool engines = !now.engines.empty() || !now.not_started.empty(); // then memory knows better than the copy
	log_error("%s is not used; %s", host_.config_path,
		  engines || found.settings ? "the former settings stay in force"
					    : "no pod is placed, and Slurm's own jobs start without reservation pods");
	if (engines)
		return std::nullopt;
	if (found.settings)
		return std::move(*found.settings);
	gate_.set_clusters({});
	return std::nullopt;
}

void Runtime::reload()
{
	start_control();
	const auto wanted = settings_to_use();
	if (!wanted)
		return;
	listen_for_metrics(wanted->metrics);
	complete_tokens(wanted->tokens);
	const RuntimeState now = state();
	if (now.parked)
		return;
	std::vector<std::string> stop;
	std::vector<ClusterSettings> start = wanted->clusters;
	for (const auto &engine : now.engines)
		if (std::erase(start, engine->settings()) == 0)
			stop.push_back(engine->settings().name);
	for (const auto &name : stop)
		stop_engine(name);
	for (const auto &name : stop) // one that is there again tells anew; until then the devices stay masked
		if (std::ranges::find(wanted->clusters, name, &ClusterSettings::name) == wanted->clusters.end())
			holds_.forget_missing(name);
	std::shared_ptr<SlurmWorker> worker; // that engines end takes its time: shutdown() may have been called meanwhile
	std::uint64_t reload = 0;
	{
		std::lock_guard lock(mutex_);
		worker = worker_;
		reload = ++reloads_;
		not_started_.clear();
	}
	if (!worker)
		return;
	close_added(*worker, wanted->clusters);
	open_removed(wanted->clusters);
	tell_gate(gate_, wanted->clusters);
	worker->set_clusters(wanted->clusters.size());
	for (const auto &c : start) // each: none is left out for another one
		guard("start of a cluster", [&] { start_engine({c, reload}); });
}

// Threads and descriptors may come back, and nobody reads the configuration again for that. Until then all stays as the ledger
// has it, and jobs that want pods of this cluster wait in the gate.
void Runtime::start_engine(const Start &start)
{
	std::shared_ptr<SlurmWorker> worker;
	{
		std::lock_guard lock(mutex_);
		if (parked_ || !worker_ || start.reload != reloads_)
			return;
		worker = worker_;
	}
	const char *name = start.settings.name.c_str();
	auto made = start_new(start.settings, worker);
	if (!made)
		return start_later(start, *worker, made.error().message);
	if (start.failures > 0)
		log_info("cluster %s: its engine is started, after %d %s that failed", name, start.failures,
			 start.failures == 1 ? "try" : "tries");
	const auto &engine = *made;
	if (unless_parked([&] {
			engines_[start.settings.name] = engine;
			not_started_.erase(start.settings.name);
		}))
		return engine->gate_changed();
	engine->stop();
	engine->join(longest_shutdown);
}

Result<std::shared_ptr<ClusterEngine>> Runtime::start_new(const ClusterSettings &settings,
							    const std::shared_ptr<SlurmWorker> &worker)
{
	try {
		auto engine = make_(settings, host_, holds_, gate_, worker);
		if (auto started = engine->start(); !started)
			return started.error();
		return engine;
	} catch (const std::exception &e) {
		return Error{e.what()};
	}
}

void Runtime::start_later(Start start, SlurmWorker &worker, const std::string &why)
{
	const char *name = start.settings.name.c_str();
	if (start.failures == 0)
		log_error("cluster %s: its engine cannot be started: %s; tried again until it can, and what its pods hold stays held", name,
			  why.c_str());
	else
		log_verbose("cluster %s: its engine cannot be started: %s; tried again", name, why.c_str());
	(void) unless_parked([&] { not_started_[start.settings.name] = why; });
	const Millis pause = pause_after(start.failures++);
	worker.after(pause, [this, start = std::move(start)] { start_engine(start); });
}

void Runtime::stop_engine(const std::string &cluster)
{
	std::shared_ptr<ClusterEngine> engine;
	{
		std::lock_guard lock(mutex_);
		auto it = engines_.find(cluster);
		if (it == engines_.end())
			return;
		engine = std::move(it->second);
		engines_.erase(it);
	}
	engine->stop();
	engine->join(Millis(5'000));
	(void) holds_.set_full(cluster, {}); // the next one tells anew
}

// ---- metrics ----

// Slurm thread.
void Runtime::listen_for_metrics(const MetricsSettings &settings)
{
	std::shared_ptr<MetricsServer> server;
	{
		std::lock_guard lock(mutex_);
		if (parked_ || (!metrics_server_ && settings.listen.empty()))
			return;
		server = metrics_server_;
	}
	if (!server) {
		server = std::make_shared<MetricsServer>([this] { return metrics_page(); });
		if (auto r = server->start(); !r) {
			log_error("metrics: %s", r.error().message.c_str());
			return;
		}
		if (!unless_parked([&] { metrics_server_ = server; })) {
			server->stop();
			server->join(longest_shutdown);
			return;
		}
	}
	server->listen(settings.listen);
}

static constexpr Millis longest_count{1'000};

// The server's thread. All engines count at the same time; who does not answer in time
// is left out.
std::string Runtime::metrics_page()
{
	Scrape scrape{metrics(), {}, 0, host_.slurm_version};
	const RuntimeState now = state();
	if (now.worker)
		scrape.slurm_commands_waiting = now.worker->waiting();
	std::vector<std::shared_ptr<Counting>> counts;
	for (const auto &engine : now.engines)
		counts.push_back(engine->count());
	const Millis until = clock_.monotonic() + longest_count;
	for (const auto &c : counts)
		scrape.clusters.push_back(c->wait(std::max(Millis(0), until - clock_.monotonic())));
	return expose(scrape);
}

// ---- shutdown ----

void Runtime::shutdown()
{
	std::map<std::string, std::shared_ptr<ClusterEngine>> engines;
	std::shared_ptr<SlurmWorker> worker;
	std::shared_ptr<MetricsServer> metrics_server;
	std::shared_ptr<ControlServer> control;
	Thread thread, control_thread;
	{
		std::lock_guard lock(mutex_);
		parked_ = true;
		gate_.pause();
		metrics_server.swap(metrics_server_);
		engines.swap(engines_);
		not_started_.clear();
		worker.swap(worker_);
		std::swap(thread, worker_thread_);
		control.swap(control_);
		std::swap(control_thread, control_thread_);
	}
	if (control)
		control->stop();
	for (auto &[name, engine] : engines)
		engine->stop();
	if (worker)
		worker->stop();
	if (metrics_server)
		metrics_server->stop();
	const Millis until = clock_.monotonic() + longest_shutdown;
	auto left = [&] { return std::max(Millis(0), until - clock_.monotonic()); };
	for (auto &[name, engine] : engines)
		engine->join(left());
	if (worker)
		thread.join_or_leave(left()); // it ends when it gets slurmctld's locks
	if (metrics_server)
		metrics_server->join(left());
	if (control)
		control_thread.join_or_leave(left()); // it waits for a disk or for NSS
	for (const auto &line : metric_lines())
		log_verbose("%s", line.c_str());
}

// ---- events ----

void Runtime::tell_engine(const PodKey &key, const Job &job)
{
	std::shared_ptr<ClusterEngine> engine;
	{
		std::lock_guard lock(mutex_);
		if (auto it = engines_.find(key.cluster); it != engines_.end())
			engine = it->second;
	}
	if (engine)
		engine->job_seen(key, share(job), clock_.monotonic());
}

void Runtime::job_start(const sk8_job &abi)
{
	auto key = PodKey::from_mark(abi.mark ? abi.mark : "");
	if (!key)
		return;
	const Job job = job_from_abi(abi);
	holds_.job_started(*key, job);
	tell_engine(*key, job);
}

void Runtime::job_fini(const sk8_job &abi)
{
	auto key = PodKey::from_mark(abi.mark ? abi.mark : "");
	if (!key)
		return;
	const Job job = job_from_abi(abi);
	holds_.job_ended(*key, job.ref);
	tell_engine(*key, job);
}

} // namespace sk8::core
