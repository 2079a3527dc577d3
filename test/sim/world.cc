// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/sim/world.h"

#include <algorithm>

#include "lib/base/log.h"
#include "lib/core/names.h"

namespace sk8::sim {

static constexpr Micros longest_calm = 30 * 60 * second; // virtual: then it does not converge
static constexpr Micros out_of_service = 120 * second;   // when that is said of nodes that never come back
static constexpr Micros owners_wait = 10 * 60 * second;  // before they look why a pod does not start

static Story *log_story = nullptr;

static void log_to_story(LogLevel, const char *text)
{
	if (log_story)
		log_story->line(std::string("log: ") + text);
}

World::World(const Case &c, bool story, bool print)
	: case_(c), dice_(c.seed), story_(time_), api_(time_, story_), judge_(time_, api_, config_),
	  claims_(story_), claim_watch_(time_, dice_, story_, api_, claims_), claim_controllers_(time_, dice_, story_, api_, claims_),
	  kubelet_(time_, dice_, story_, api_, judge_), watch_(time_, dice_, story_, api_, "watch"),
	  foreign_watch_(time_, dice_, story_, api_, "foreign watch"),
	  slurm_(time_, dice_, story_, judge_, c.nodes, c.cores, c.memory, c.job_ids, c.gpus)
{
	story_.on = story;
	story_.print = print;
	log_story = story ? &story_ : nullptr;
	set_log_sink(log_to_story, story ? LogLevel::debug : LogLevel::error);
	judge_.look_at(kubelet_, slurm_);
	judge_.on_slurm_changed = [this] {
		if (process_)
			process_->slurm_changed();
	};
	judge_.holds_something = [this](const std::string &uid) { return process_ && process_->holds(uid); };
	judge_.same_program = [this](const std::string &from, const std::string &uid) {
		kubelet_.set_program(uid, kubelet_.program(from));
		if (calm_)
			time_.after(10 * second, [this] { people_go(); }); // it may never end, as the former one
	};
	judge_.reservation_made = [this](const kube::Pod &pod, const Program &program) {
		kubelet_.report_state(pod.node_name);
		kubelet_.set_program(pod.meta.uid, program);
	};
	judge_.overcommitted = [this] { return process_ ? process_->overcommitted() : std::nullopt; };
	judge_.masks = [this] { return process_ ? process_->true_masks() : nullptr; };
	judge_.wake_is_coming = [this] { return process_ && process_->wake_is_coming(); };
	api_.listen(&judge_);
	api_.listen(&kubelet_);
	api_.listen(&watch_);
	api_.listen(&foreign_watch_);
	judge_.node_state = c.node_state;
	judge_.device_plugin = kubelet_.device_plugin = c.device_plugin;
	slurm_.trusts_callers = *mutant_named(c.mutant) == Mutant::node_taken_by_force;
	slurm_.takes_more_victims = *mutant_named(c.mutant) == Mutant::second_victim;
	slurm_.forgets_native_victims = *mutant_named(c.mutant) == Mutant::second_native_victim;
	slurm_.pings = c.node_state;
	slurm_.graces.partition = c.grace;
	faults_ = c.faults;
	if (faults_)
		judge_.trouble();
	std::vector<std::string> names;
	for (const auto &[name, n] : slurm_.select().nodes)
		names.push_back(name);
	config_ = usual_config(names);
	let_be_unnamed(config_.settings, c);
	let_reserve(config_.settings, c);
	let_claim(config_.settings, c);
	slurm_.gates = config_.settings.reserves();
	for (const auto &name : names) {
		kube::Node node;
		node.meta.name = name;
		node.meta.labels["name"] = name;
		node.meta.uid = "uid-" + name;
		node.ready = true;
		node.heartbeat = epoch;
		node.allocatable.milli_cpu = 1000 * (c.cores + c.aside);
		node.allocatable.memory_bytes = (c.memory + c.aside_memory) << 20;
		node.allocatable_pods = c.slots;
		if (c.gpus && !c.claims)
			node.allocatable.extended[gpu_resource] = c.gpus;
		if (c.device_plugin)
			node.meta.annotations[std::string(core::names::devices)] = told_devices(c.gpus, {});
		api_.set_node(std::move(node));
	}
	if (c.claims)
		play_claims();
}

void World::boot()
{
	process_ = std::make_shared<Process>(Outside{time_, dice_, story_, api_, watch_, foreign_watch_, slurm_, disk_,
						     judge_, *mutant_named(case_.mutant), case_.node_state, config_,
						     case_.claims ? &claims_ : nullptr, case_.claims ? &claim_watch_ : nullptr});
	process_->lock_delay = locks_;
	process_->set_faults(faults_);
	slurm_.boot(*process_);
	judge_.slurm_is_back();
	if (calm_) // Slurm may have gone back to a job that somebody held
		time_.after(10 * second, [this] { people_go(); });
}

// What the engine knew at this time must be on disk; -1: nothing must.
Micros World::written_by() const
{
	static constexpr Micros within = 3 * second; // after the first try: a second, then one more try
	const Micros since = std::max(process_->started_at(), disk_full_until_);
	const bool can = process_->started_at() >= 0 && !disk_.full && time_.now() - since > 2 * within;
	return can ? time_.now() - within : -1;
}

void World::crash()
{
	const Micros must_be_written = written_by();
	process_->die();
	dead_.push_back(std::move(process_));
	process_.reset();
	slurm_.kill();
	const bool forget = std::exchange(forget_, false);
	judge_.slurm_crashed(forget ? core::Ledger{} : disk_.saved(), forget ? -1 : must_be_written);
	if (forget) {
		tell(story_, "StateSaveLocation is lost");
		// Then nothing is left that could know of a Binding that arrives later, of this
		// run or of one before: a limit, told in doc/reliability.md.
		for (const auto &process : dead_)
			process->lose_requests();
		slurm_.lose_state();
		judge_.state_lost();
		disk_ = {};
	}
	time_.after(down_, [this] { boot(); });
}

// Undoes a fault after so long, if that is not done yet.
void World::until(Micros delay, const Action &a, std::function<void()> f)
{
	time_.after(delay, [this, verb = a.verb, f = std::move(f)] {
		if (calm_)
			return;
		tell(story_, "over: ", verb);
		f();
	});
}

void World::calm()
{
	tell(story_, "---- no more faults ----");
	calm_ = true;
	api_.down = api_.hung = api_.forbids = false;
	faults_ = slurm_.busy = 0;
	locks_ = kubelet_.lateness = kubelet_.agent_lateness = 0;
	watch_.usual();
	foreign_watch_.usual();
	mend_drivers();
	disk_.full = false;
	for (const auto &[name, n] : slurm_.select().nodes) {
		kubelet_.connect(name, true);
		if (judge_.is_gone(name))
			continue;
		if (!kubelet_.powered(name)) {
			kubelet_.power(name, true);
			slurm_.node_returns(name);
		}
	}
	if (process_) {
		process_->die_after(-1);
		process_->lock_delay = 0;
		process_->set_faults(0);
	}
	judge_.no_more_restores();
	people_go();
	time_.after(out_of_service, [this] { collect_pods(); });
	time_.after(owners_wait, [this] { owners_look(); });
}

bool World::is_away() const
{
	return !process_ || !process_->controller() || !process_->controller()->started() || api_.down;
}

bool World::is_hindered() const
{
	return faults_ || api_.hung || api_.forbids || locks_ || disk_.full || !watch_.is_usual() || !claim_watch_.is_usual();
}

bool World::refuses() const
{
	return is_hindered() || api_.down || slurm_.busy;
}

// Which devices a node lacks that never comes back nobody tells any more: that stays as it was (NodesController::devices()).
bool World::something_masked() const
{
	const auto masks = process_->true_masks();
	return masks && !std::ranges::all_of(masks->masks, [this](const auto &m) {
		return judge_.is_gone(m->node) && !m->gres.empty() && !m->whole && m->cores.empty() && m->more_cores == 0 && m->milli_cpu == 0 &&
		       m->memory_mb == 0 && m->overhead_milli_cpu == 0 && m->overhead_mb == 0;
	});
}

std::string World::unfinished() const
{
	if (!process_ || !process_->controller())
		return "slurmctld is down";
	return judge_.unfinished(something_masked(), process_->controller()->size(), disk_.ledger);
}

Outcome World::run()
{
	Micros last = 0;
	for (const auto &a : case_.actions) {
		time_.after(a.at, [this, &a] { act(a); });
		last = std::max(last, a.at);
	}
	boot();
	const Micros calm_at = last + 20 * second;
	time_.after(calm_at, [this] { calm(); });
	Micros look_at = 0;
	bool finished = false;
	while (!time_.empty() && time_.now() < calm_at + longest_calm && judge_.verdict().empty() && !finished) {
		const bool away = is_away(), hindered = is_hindered(), unheard = !watch_.is_watching(), refused = refuses();
		time_.step();
		judge_.in_way_of_nodes(unheard || !watch_.is_watching(), refused || refuses());
		if (away || is_away())
			judge_.in_its_way(true);
		if (hindered || is_hindered())
			judge_.in_its_way(false);
		if (process_ && !process_->violation.empty())
			judge_.violation(process_->violation);
		if (process_ && process_->dying())
			crash();
		judge_.check();
		if (calm_ && time_.now() >= look_at) {
			release_second_jobs();
			if (judge_.excuses() && unfinished().empty())
				judge_.people_tell_all();
			finished = !judge_.excuses() && unfinished().empty();
			if (!judge_.excuses() && !finished)
				people_tell_all();
			look_at = time_.now() + second;
		}
		finished |= judge_.nothing_is_promised();
	}
	if (judge_.verdict().empty() && !judge_.nothing_is_promised()) {
		if (const std::string what = unfinished(); !what.empty())
			judge_.violation("I3: " + std::to_string((time_.now() - calm_at) / second) +
					 " s after the last fault " + what);
		judge_.final_check();
	}
	if (!judge_.verdict().empty())
		tell(story_, "VIOLATION: ", judge_.verdict());
	return {judge_.verdict(), time_.steps(), time_.now()};
}

} // namespace sk8::sim
