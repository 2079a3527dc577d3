// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/cluster_engine.h"

#include "lib/base/doubling.h"
#include "lib/base/guard.h"
#include "lib/base/log_limit.h"
#include "lib/core/cluster_watch.h"
#include "lib/core/kube_link.h"
#include "lib/core/metrics.h"
#include "lib/core/names.h"
#include "lib/core/node_link.h"

namespace sk8::core {

static constexpr Millis longest_wait{1'000};

ClusterEngine::ClusterEngine(const ClusterSettings &settings, const sk8_host &host, HoldTable &holds,
			     Gate &gate, std::shared_ptr<SlurmWorker> worker)
	: settings_(settings), host_(host), holds_(holds), gate_(gate), worker_(std::move(worker)),
	  seat_(worker_->seat(settings.name)), loop_(clock_),
	  random_(std::random_device{}()), link_(settings.name, *this), dra_(settings.resources)
{
	loop_.set_limits({.in_flight = static_cast<int>(settings.api.in_flight),
			  .per_second = static_cast<double>(settings.api.requests_per_second)});
}

ClusterEngine::~ClusterEngine() = default;

// ---- any thread ----

Result<void> ClusterEngine::start()
{
	auto thread = Thread::start("sk8-engine", [self = shared_from_this()] { self->run(); });
	if (!thread)
		return thread.error();
	thread_ = std::move(*thread);
	return {};
}

void ClusterEngine::stop()
{
	stop_.store(true, std::memory_order_release);
	worker_->detach(settings_.name);
	loop_.wake();
}

bool ClusterEngine::join(Millis timeout)
{
	return thread_.join_or_leave(timeout); // it owns a share of us
}

void ClusterEngine::job_seen(const PodKey &key, const JobPtr &job, Millis seen_at)
{
	post([this, key, job, seen_at] {
		if (pods_)
			pods_->job_changed(key, job, seen_at);
	});
}

void ClusterEngine::post(std::function<void()> f)
{
	posted_.fetch_add(1, std::memory_order_relaxed);
	loop_.post([this, f = std::move(f)] {
		posted_.fetch_sub(1, std::memory_order_relaxed);
		f();
	});
}

std::shared_ptr<Counting> ClusterEngine::count()
{
	ClusterNumbers known;
	known.cluster = settings_.name;
	known.events_waiting = posted_.load(std::memory_order_relaxed);
	auto counting = std::make_shared<Counting>(std::move(known));
	loop_.post([this, counting] { counting->answer(numbers()); });
	return counting;
}

// ---- engine thread ----

ClusterNumbers ClusterEngine::numbers() const
{
	ClusterNumbers out;
	out.cluster = settings_.name;
	out.answered = true;
	out.requests_in_flight = loop_.in_flight();
	out.events_waiting = posted_.load(std::memory_order_relaxed);
	out.masks = holds_.mask_numbers(settings_.name);
	if (!pods_ || !node_reflector_)
		return out;
	out.pods = pods_->numbers();
	out.overcommitted_nodes = nodes_->overcommitted();
	out.connected = node_reflector_->healthy();
	auto last_event = [this](const auto &reflector) {
		const Millis heard = reflector.health().heard;
		return heard == Millis(0) ? 0 : wall_at(heard);
	};
	std::int64_t oldest = INT64_MAX;
	for (const auto &r : pod_reflectors_) {
		out.connected &= r->healthy();
		oldest = std::min(oldest, last_event(*r));
	}
	out.foreign = foreign_->numbers();
	out.connected &= foreign_reflector_->healthy();
	out.watches = {{"pods", oldest},
		       {"foreign pods", last_event(*foreign_reflector_)},
		       {"nodes", last_event(*node_reflector_)}};
	if (claim_reflector_) {
		out.connected &= slice_reflector_->healthy() && class_reflector_->healthy() && claim_reflector_->healthy();
		out.watches.push_back({"resource slices", last_event(*slice_reflector_)});
		out.watches.push_back({"device classes", last_event(*class_reflector_)});
		out.watches.push_back({"resource claims", last_event(*claim_reflector_)});
	}
	return out;
}

void ClusterEngine::listed(const char *resource, bool first)
{
	if (!first)
		metrics().relists.add({settings_.name, resource});
}

void ClusterEngine::slurm_nodes(std::vector<SlurmNode> nodes)
{
	if (!pods_)
		return;
	if (pods_->slurm_nodes(nodes)) {
		full_nodes_stale_ = true;
		foreign_->nodes_changed();
		if (reservations_)
			reservations_->nodes_changed();
		if (exclusive_)
			exclusive_->nodes_changed();
	}
	nodes_->slurm_nodes(nodes);
}

void ClusterEngine::overcommits(const Overcommits &over)
{
	if (nodes_)
		nodes_->overcommits(over);
}

void ClusterEngine::jobs_replaced(const std::vector<std::pair<PodKey, JobPtr>> &jobs)
{
	if (pods_)
		pods_->jobs_replaced(jobs);
}

void ClusterEngine::job_changed(const PodKey &key, const JobPtr &job)
{
	if (pods_)
		pods_->job_changed(key, job, now());
}

void ClusterEngine::job_purged(const PodKey &key, JobRef ref)
{
	if (pods_)
		pods_->job_purged(key, ref);
}

void ClusterEngine::after(Millis delay, std::function<void()> f)
{
	loop_.after(delay, std::move(f));
}

Millis ClusterEngine::now() const
{
	return clock_.monotonic();
}

std::int64_t ClusterEngine::wall_seconds() const
{
	return clock_.wall_seconds();
}

double ClusterEngine::random()
{
	return std::uniform_real_distribution<double>(0, 1)(random_);
}

void ClusterEngine::run()
{
	log_verbose("cluster %s: engine starts", settings_.name.c_str());
	connect();
	while (!stop_.load(std::memory_order_acquire)) {
		turn_.store(now().count(), std::memory_order_relaxed);
		guard("engine", [this] {
			loop_.run_once(longest_wait);
			if (pods_ && !stop_.load(std::memory_order_acquire))
				end_of_turn();
			log_limiter().tell();
		});
	}
	// Answers that would still come belong to nobody. The rest is destroyed here,
	// on its own thread, if this was the last share.
	pod_reflectors_.clear();
	foreign_reflector_.reset();
	unbound_reflector_.reset();
	node_reflector_.reset();
	slice_reflector_.reset();
	class_reflector_.reset();
	claim_reflector_.reset();
	reservations_.reset();
	exclusive_.reset();
	foreign_.reset();
	nodes_.reset();
	pods_.reset();
	client_.reset();
}

void ClusterEngine::end_of_turn()
{
	if (const auto changed = dra_.inventory.take_changed(); std::exchange(claims_stale_, false) || changed.any()) {
		foreign_->claims_changed();
		foreign_known();
		nodes_->drivers_changed(changed);
		pods_->dra_changed();
		if (reservations_)
			reservations_->claims_changed();
	}
	if (reservations_)
		reservations_->end_of_turn(); // before what it masks is counted and saved
	if (foreign_->use_changed())
		pods_->use_changed();
	for (const auto &deleted : {foreign_->take_deleted_nodes(), pods_->take_deleted_nodes()})
		for (const auto &node : deleted)
			nodes_->deleted_before(node);
	pods_->end_of_turn(); // saves what foreign pods hold as well
	if (knows_lost())
		for (const auto &node : pods_->lost().take_changed())
			nodes_->lost_changed(node);
	nodes_file_->flush();
	if (pods_->use().full_changed() || std::exchange(full_nodes_stale_, false))
		tell_full_nodes();
}

// Before that a question of a former slurmctld stays.
bool ClusterEngine::knows_lost() const
{
	return pods_->started() && foreign_->synced();
}

// Slurm knows of no pod slots: where none is left it is told to start nothing that needs one.
void ClusterEngine::tell_full_nodes()
{
	std::map<std::string, Full> out;
	for (const auto &node : pods_->use().full())
		if (pods_->nodes().shared(node) == NodeView::Shared::yes)
			out[node] = {true, pods_->nodes().mixed(node), reservations_ ? reservations_->shares_pod_of(node) : 0};
	if (holds_.set_full(settings_.name, out))
		slurm_->wake_scheduler();
}

// Credentials may not be there yet (a mount, a rotation): not an error for ever.
void ClusterEngine::connect()
{
	auto access = settings_.kubeconfig.empty()
			      ? kube::in_cluster_access()
			      : kube::load_kubeconfig(settings_.kubeconfig, settings_.context, host_.slurm_uid);
	if (access) {
		link_.back("kubeconfig");
		return build(*access);
	}
	access_error_ = access.error().message;
	link_.lost("kubeconfig", access_error_);
	loop_.after(pause_after(access_failures_++), [this] { connect(); });
}

static void count_answer(const std::string &cluster, const kube::Answer &a)
{
	metrics().api_requests.add({cluster, a.verb, std::string(a.resource), code_label(a.status)});
	for (std::size_t i = 0; i < timed_verbs.size(); i++)
		if (timed_verbs[i] == std::string_view(a.verb))
			metrics().api_ms[i]->record(static_cast<std::uint64_t>(a.took.count()));
}

void ClusterEngine::build(const kube::ClusterAccess &access)
{
	access_error_.clear();
	kube::ClientOptions options;
	options.answered = [this](const kube::Answer &a) {
		count_answer(settings_.name, a);
		link_.answered(a.status, std::string_view(a.verb) == "list" || std::string_view(a.verb) == "watch");
	};
	client_ = std::make_unique<kube::Client>(loop_, access, options);
	client_->observe([this](const kube::CallOutcome &outcome) { link_.called(outcome); });
	kube_ = std::make_unique<KubeLink>(*client_);
	slurm_ = worker_->port(seat_);
	ledger_ = std::make_unique<LedgerFile>(ledger_path(host_.state_dir, settings_.name),
					       holds_.ledger(settings_.name));
	pods_ = std::make_unique<PodsController>(
		settings_, PodsPorts{*slurm_, *kube_, *this, holds_, *ledger_, lookup_user, &dra_});
	foreign_ = std::make_unique<ForeignPods>(
		settings_.name,
		ForeignPorts{*slurm_, *this, holds_, *ledger_,
			     [this](const std::string &uid) { return reservations_ ? reservations_->covered(uid) : Cover{}; },
			     settings_.reservations.ns, settings_.nodes.exclusive.bare_pods,
			     [this](const std::string &node) { return exclusive_ && exclusive_->keeps_pods(node); }, &pods_->lost(), &dra_,
			     [this](const PodKey &key) { pods_->over_elsewhere(key); }},
		pods_->nodes(), pods_->use(), settings_.resources);
	reserve();
	pods_->expect_foreign(false);
	open_nodes_file();
	node_kube_ = std::make_unique<NodeLink>(*client_);
	node_slurm_ = worker_->node_port(seat_);
	nodes_ = std::make_unique<NodesController>(
		settings_, NodesPorts{*node_slurm_, *node_kube_, *this, user_text, host_.slurm_uid,
				       [this](const std::string &node, const GresList &gres) { set_missing(node, gres); },
				       [this](const std::string &node) { return exclusive_->wants_taint(node); },
				       [this](const std::string &node) {
					       return knows_lost() ? std::optional(pods_->lost().question(node)) : std::nullopt;
				       },
				       dra_.wanted() ? &dra_.inventory : nullptr, [this] { return worker_->one_cluster(); },
				       [this](const std::string &node, const std::vector<std::string> &features) {
					       nodes_file_->set_features(node, features);
				       }});
	for (const auto &[node, known] : nodes_file_->nodes())
		if (!known.features.empty())
			nodes_->had_features(node);
	worker_->attach(seat_, shared_from_this());
	for (const auto &name : settings_.scheduler_names)
		watch_pods(name);
	watch_foreign_pods();
	watch_unbound_pods();
	watch_nodes();
	watch_dra();
}

void ClusterEngine::set_missing(const std::string &node, GresList gres)
{
	if (dra_.wanted() && !dra_.inventory.synced())
		gres = missing_as_before(std::move(gres), nodes_file_->missing(node), settings_.resources);
	nodes_file_->set_missing(node, gres);
	if (holds_.set_missing(settings_.name, node, gres))
		slurm_->wake_scheduler(); // less is masked than before
}

// A file that cannot be believed is as none: the runtime has said so, and the first list replaces it.
void ClusterEngine::open_nodes_file()
{
	const std::string path = saved_nodes_path(host_.state_dir, settings_.name);
	auto known = load_saved_nodes(path, host_.slurm_uid);
	nodes_file_ = std::make_unique<NodesFile>(path, known ? std::move(*known) : SavedNodes{}, *this);
}

// The API server answers again: whatever else failed meanwhile has pauses of its own,
// and one after the other they would take a minute. A watch that has only expired is no
// reason: where all expire again and again each one would end the pauses of all the others.
void ClusterEngine::back(const std::string &what)
{
	if (!link_.back(what))
		return;
	for (const auto &r : pod_reflectors_)
		r->hurry();
	if (foreign_reflector_)
		foreign_reflector_->hurry();
	if (unbound_reflector_)
		unbound_reflector_->hurry();
	if (node_reflector_)
		node_reflector_->hurry();
	if (slice_reflector_)
		slice_reflector_->hurry();
	if (class_reflector_)
		class_reflector_->hurry();
	if (claim_reflector_)
		claim_reflector_->hurry();
	pods_->hurry();
}

void ClusterEngine::watch_pods(const std::string &scheduler_name)
{
	kube::ReflectorOptions options;
	options.name = "pods of cluster " + settings_.name;
	options.path = resource_path(kube::pods_resource);
	options.field_selector = "spec.schedulerName=" + scheduler_name;
	options.backoff.most = longest_pause;
	const std::string what = "pods of " + scheduler_name;
	kube::Reflector<kube::Pod>::Callbacks call;
	call.on_replace = [this, scheduler_name, what, first = true](std::vector<kube::PodPtr> pods) mutable {
		listed("pods", std::exchange(first, false));
		back(what);
		pods_->pods_replaced(scheduler_name, pods);
	};
	call.on_upsert = [this](kube::PodPtr pod) { pods_->pod_changed(pod); };
	call.on_delete = [this](kube::PodPtr last) { pods_->pod_removed(last); };
	call.on_lost = [this, what](std::string why) { link_.lost(what, why); };
	call.on_regained = [this, what] { back(what); };
	pod_reflectors_.push_back(std::make_unique<kube::Reflector<kube::Pod>>(
		*client_, options, kube::decode_pod, call, [this] { return random(); }));
	pod_reflectors_.back()->start();
}

// All that has a node and is of no scheduler of ours, also what has ended: only its last
// state proves that.
void ClusterEngine::watch_foreign_pods()
{
	kube::ReflectorOptions options{.path = resource_path(kube::pods_resource), .field_selector = "spec.nodeName!="};
	for (const auto &name : settings_.scheduler_names)
		options.field_selector += ",spec.schedulerName!=" + name;
	kube::Reflector<ForeignPod>::Callbacks call;
	hear_of_foreign_pods(call);
	start_watch(foreign_reflector_, "foreign pods", std::move(options), decode_foreign_pod, std::move(call));
}

void ClusterEngine::hear_of_foreign_pods(kube::Reflector<ForeignPod>::Callbacks &call)
{
	call.on_replace = [this, first = true](std::vector<ForeignPodPtr> pods) mutable {
		listed("foreign pods", std::exchange(first, false));
		back("foreign pods");
		if (reservations_)
			reservations_->replaced(pods);
		foreign_->replaced(pods);
		foreign_listed_ = true;
		foreign_known();
		for (const auto &pod : pods)
			holds_claims(*pod);
		exclusive_->all_pods_changed();
	};
	call.on_upsert = [this](ForeignPodPtr pod) {
		if (reservations_)
			reservations_->changed(pod);
		foreign_->changed(pod);
		holds_claims(*pod);
		exclusive_->pods_changed(pod->node_name);
	};
	call.on_delete = [this](ForeignPodPtr last) {
		if (reservations_)
			reservations_->removed(last);
		foreign_->removed(last);
		exclusive_->pods_changed(last->node_name);
	};
}

// Those of jobs whose containers claim devices, before they are bound; afterwards they are foreign pods. Whatever the settings say
// of nodes and templates: they may have said more.
void ClusterEngine::watch_unbound_pods()
{
	const std::string what = "unbound pods of jobs";
	kube::Reflector<ForeignPod>::Callbacks call;
	call.on_replace = [this, what, first = true](std::vector<ForeignPodPtr> pods) mutable {
		listed("pods", std::exchange(first, false));
		back(what);
		reservations_->unbound_replaced(pods);
	};
	call.on_upsert = [this](ForeignPodPtr pod) { reservations_->unbound_changed(pod); };
	call.on_delete = [this](ForeignPodPtr last) { reservations_->unbound_removed(last); };
	start_watch(unbound_reflector_, what,
		    {.path = resource_path(kube::pods_resource, settings_.reservations.ns),
		     .field_selector = "spec.nodeName=,spec.schedulerName=" + std::string(names::reservation_scheduler)},
		    decode_foreign_pod, std::move(call));
}

// Who shares one with this foreign pod may have waited for what that holds.
void ClusterEngine::holds_claims(const ForeignPod &pod)
{
	for (const auto &claim : pod.resource_claims)
		pods_->claim_changed(pod.meta.ns, claim.claim);
}

void ClusterEngine::watch_nodes()
{
	kube::ReflectorOptions options;
	options.name = "nodes of cluster " + settings_.name;
	options.path = resource_path(kube::nodes_resource);
	options.keep_managed_fields = true; // who has cordoned it
	options.backoff.most = longest_pause;
	kube::Reflector<kube::Node>::Callbacks call;
	call.on_replace = [this, first = true](std::vector<kube::NodePtr> nodes) mutable {
		listed("nodes", std::exchange(first, false));
		back("nodes");
		pods_->nodes_replaced(nodes);
		full_nodes_stale_ = true;
		foreign_->nodes_changed();
		if (reservations_)
			reservations_->nodes_changed();
		nodes_->nodes_replaced(nodes);
		exclusive_->nodes_changed();
	};
	call.on_upsert = [this](kube::NodePtr node) {
		const bool placing = pods_->node_changed(node);
		full_nodes_stale_ |= placing;
		foreign_->node_changed(node->meta.name, placing);
		if (reservations_)
			reservations_->node_changed(node->meta.name);
		if (reservations_ && placing)
			reservations_->nodes_changed();
		nodes_->node_changed(node);
		exclusive_->node_changed(node->meta.name);
	};
	call.on_delete = [this](kube::NodePtr last) {
		pods_->node_removed(last);
		full_nodes_stale_ = true;
		foreign_->node_changed(last->meta.name, true);
		if (reservations_)
			reservations_->nodes_changed();
		nodes_->node_removed(last);
		exclusive_->node_changed(last->meta.name);
	};
	call.on_lost = [this](std::string why) {
		link_.lost("nodes", why);
		nodes_->lost();
	};
	call.on_regained = [this] {
		back("nodes");
		nodes_->back();
	};
	node_reflector_ = std::make_unique<kube::Reflector<kube::Node>>(
		*client_, options, kube::decode_node, call, [this] { return random(); });
	node_reflector_->start();
}

} // namespace sk8::core
