// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/pinned_report.h"

#include "lib/agent/cpu_manager.h"
#include "lib/base/log.h"
#include "lib/base/log_limit.h"
#include "lib/core/names.h"

namespace sk8::agent {

// The kubelet frees CPUs of what has ended by and by (cpuManagerReconcilePeriod, 10 s).
static constexpr Millis looks_again{10'000};
static constexpr Millis longest_pause{60'000};

PinnedReport::PinnedReport(kube::Client &client, std::string node, std::string kubelet_root_dir, CpuTopology topology,
			   kube::Random random)
	: client_(client), node_(std::move(node)), kubelet_root_dir_(std::move(kubelet_root_dir)),
	  topology_(std::move(topology)), random_(std::move(random))
{
	watch();
	look();
}

PinnedReport::~PinnedReport()
{
	client_.loop().cancel_timer(timer_);
	client_.cancel(writing_);
}

void PinnedReport::look()
{
	const CpuManager manager = read_cpu_manager(kubelet_root_dir_);
	wanted_ = core::pinned_text(pinned_pods(manager, topology_));
	if (manager.pins() && !reflector_)
		watch();
	if (!manager.pins() && known_ == "")
		reflector_.reset();
	client_.loop().cancel_timer(timer_);
	timer_ = client_.loop().after(looks_again, [this] { look(); });
	write();
}

void PinnedReport::watch()
{
	kube::ReflectorOptions options;
	options.name = "this node";
	options.path = resource_path(kube::nodes_resource);
	options.field_selector = "metadata.name=" + node_;
	options.backoff.most = longest_pause;
	kube::Reflector<kube::Node>::Callbacks call;
	call.on_replace = [this](const std::vector<kube::NodePtr> &nodes) { node_is(nodes.empty() ? nullptr : nodes.front().get()); };
	call.on_upsert = [this](const kube::NodePtr &node) { node_is(node.get()); };
	call.on_delete = [this](const kube::NodePtr &) { node_is(nullptr); };
	known_.reset();
	reflector_ = std::make_unique<kube::Reflector<kube::Node>>(client_, options, kube::decode_node, call, random_);
	reflector_->start();
}

void PinnedReport::node_is(const kube::Node *node)
{
	known_.reset();
	if (node) {
		const auto at = node->meta.annotations.find(std::string(core::names::pinned_cores));
		known_ = at == node->meta.annotations.end() ? "" : at->second;
	}
	write();
}

void PinnedReport::write()
{
	if (writing_ || !known_ || *known_ == wanted_)
		return;
	Json annotation = Json::object();
	annotation.set(core::names::pinned_cores, wanted_.empty() ? Json::null() : Json::string(wanted_));
	Json patch = Json::object();
	patch.set("metadata", Json::object().set("annotations", annotation));
	writing_ = client_.patch(resource_path(kube::nodes_resource, {}, node_), kube::PatchType::merge, patch,
				 [this, sent = wanted_](const kube::Reply &reply) {
		writing_ = 0;
		if (!reply.ok()) {
			log_limited(LogLevel::warning, node_, "agent: slurmctld is not told on which cores the kubelet keeps pods: %s",
				    reply.error.c_str());
			return; // look() comes again
		}
		log_verbose("agent: slurmctld is told on which cores the kubelet keeps pods: %s", sent.empty() ? "none" : sent.c_str());
		known_ = sent;
		write();
	});
}

} // namespace sk8::agent
