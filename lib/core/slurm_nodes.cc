// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The Slurm thread's part for nodes: they are looked at when Slurm says that some have
// changed, or when masks have, and drained, resumed and given features one at a time.
#include <utility>

#include "lib/base/guard.h"
#include "lib/core/slurm_lock.h"
#include "lib/core/slurm_worker.h"

namespace sk8::core {

class SlurmWorker::NodePort final : public SlurmNodePort {
public:
	NodePort(SlurmWorker &worker, Seat seat) : worker_(worker), seat_(std::move(seat)) {}

	void change_node(NodeChange change, Done done) override
	{
		worker_.enqueue({seat_, std::move(change), std::move(done)});
	}
	void change_features(FeatureChange change, Done done) override
	{
		worker_.enqueue({seat_, std::move(change), std::move(done)});
	}

private:
	SlurmWorker &worker_;
	const Seat seat_;
};

std::unique_ptr<SlurmNodePort> SlurmWorker::node_port(const Seat &who)
{
	return std::make_unique<NodePort>(*this, who);
}

static SlurmNode node_from_abi(const sk8_node &n)
{
	return {n.name, n.threads_per_core, n.drain, n.down, n.fail, n.maint, n.asleep, n.reason, n.reason_uid, n.job_count,
		n.features, n.active_features, gres_from_abi(n.gres, n.gres_count), n.sockets, n.cores_per_socket};
}

void SlurmWorker::run(const NodeChange &c, SlurmReply &reply)
{
	const sk8_node_change change{c.node.c_str(), c.action, c.reason.c_str(), c.expected.c_str()};
	sk8_outcome out{};
	ops_.change_node(&change, &out);
	copy_outcome(out, reply);
	look_again(c.node, reply);
}

void change_features(const sk8_slurm_ops &ops, const FeatureChange &c, sk8_outcome &out)
{
	const sk8_feature_change change{c.node.c_str(), c.expected.c_str(), c.expected_active.c_str(), c.features.c_str(),
					c.active.c_str()};
	ops.change_features(&change, &out);
}

void SlurmWorker::run(const FeatureChange &c, SlurmReply &reply)
{
	sk8_outcome out{};
	change_features(ops_, c, out);
	copy_outcome(out, reply);
	look_again(c.node, reply);
}

void SlurmWorker::look_again(const std::string &node, SlurmReply &reply)
{
	sk8_node now{};
	if (ops_.find_node(node.c_str(), &now))
		reply.node = node_from_abi(now);
}

struct SeenNodes {
	std::vector<SlurmNode> nodes;
	std::vector<JobsOnNode> use;
};

static void see_node(void *arg, const sk8_node *n)
{
	guard("node list", [&] {
		auto &seen = *static_cast<SeenNodes *>(arg);
		seen.nodes.push_back(node_from_abi(*n));
		seen.use.push_back({n->name, n->cores, n->used_cores, n->threads_per_core, n->memory_mb, n->used_memory_mb,
				    seen.nodes.back().gres, gres_from_abi(n->used_gres, n->used_gres_count)});
	});
}

static std::uint64_t generation_of(const std::shared_ptr<const MaskSnapshot> &masks)
{
	return masks ? masks->generation : 0;
}

// Nobody but us tells slurmctld that they are others: it shows nodes as they were, and an idle cluster's backfill has no turn.
bool SlurmWorker::masks_are_news() const
{
	return holds_.masks_can_go() || generation_of(holds_.masks()) != masks_told_ || (backfill_missed_ && !ops_.in_backfill());
}

void SlurmWorker::tell_of_masks(SlurmLock &lock)
{
	const std::uint64_t generation = generation_of(holds_.masks());
	lock.masks |= generation != std::exchange(masks_told_, generation);
	if (ops_.in_backfill())
		backfill_missed_ |= lock.changed || lock.masks;
	else
		lock.masks |= std::exchange(backfill_missed_, false);
}

// A tenth of the shortest SuspendTime that makes sense.
static constexpr Millis keep_up_interval{10'000};

void SlurmWorker::keep_nodes_up()
{
	const bool masked = holds_.masks() != nullptr;
	if (clock_.monotonic() < keep_up_at_ || !ops_.saves_power() || !(masked || kept_up_))
		return;
	SlurmLock lock(ops_, clock_, true);
	ops_.keep_masked_nodes_up();
	keep_up_at_ = clock_.monotonic() + keep_up_interval;
	kept_up_ = masked; // once more after the last pod: what was to go, and had to wait for it, may go now
}

// All nodes, as an engine's thread is told of them when it comes to that: thousands for each scan would be too much for one
// that is late, so newer ones take their place.
class SlurmWorker::NodeNews {
public:
	struct Seen {
		std::vector<SlurmNode> nodes;
		Overcommits over;
	};
	explicit NodeNews(std::shared_ptr<const Seen> seen) : seen_(std::move(seen)) {}
	std::shared_ptr<const Seen> take()
	{
		std::lock_guard lock(mutex_);
		return std::exchange(seen_, nullptr);
	}
	// false: they have been taken.
	bool replace(const std::shared_ptr<const Seen> &seen)
	{
		std::lock_guard lock(mutex_);
		if (!seen_)
			return false;
		seen_ = seen;
		return true;
	}

private:
	std::mutex mutex_;
	std::shared_ptr<const Seen> seen_; // null: taken
};

void SlurmWorker::scan_nodes(Posts &posts)
{
	const std::int64_t now = clock_.wall_seconds();
	if (!news(ops_.last_node_update(), nodes_seen_, now)) // a pod that comes second is news as well: tell_of_masks()
		return;
	nodes_seen_ = now;
	SeenNodes seen;
	std::shared_ptr<const MaskSnapshot> masks; // of the same moment
	{
		SlurmLock lock(ops_, clock_, false, &scan_held_us_);
		ops_.each_node(see_node, &seen);
		masks = holds_.masks();
	}
	Overcommits over = masks ? overcommits(seen.use, *masks) : Overcommits();
	const auto now_seen = std::make_shared<const NodeNews::Seen>(NodeNews::Seen{std::move(seen.nodes), std::move(over)});
	std::lock_guard lock(mutex_);
	for (const auto &[cluster, l] : listeners_) {
		NodePost &last = node_posts_[cluster];
		const std::uint64_t seat = seats_[cluster];
		const auto waits = last.news.lock();
		if (waits && !last.followed && last.seat == seat && waits->replace(now_seen))
			continue;
		if (waits)
			waits->take(); // the next one says more
		auto next = std::make_shared<NodeNews>(now_seen);
		last = {seat, next, false};
		posts[cluster].push_back([news = std::move(next)](SlurmListener &listener) {
			if (const auto told = news->take()) {
				listener.slurm_nodes(told->nodes);
				listener.overcommits(told->over);
			}
		});
	}
}

} // namespace sk8::core
