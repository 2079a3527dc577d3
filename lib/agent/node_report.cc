// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/node_report.h"

#include <algorithm>

#include "lib/base/log.h"
#include "lib/base/log_limit.h"
#include "lib/base/text.h"
#include "lib/core/names.h"
#include "lib/core/node_state.h"

namespace sk8::agent {

// The kubelet frees CPUs of what has ended by and by (cpuManagerReconcilePeriod, 10 s).
static constexpr Millis looks_again{10'000};
static constexpr Millis longest_pause{60'000};
// Of 256 KiB that all annotations of an object have together.
static constexpr auto nvidia_driver = "/proc/driver/nvidia";
static constexpr std::size_t longest_note = 100'000, longest_logged = 1'000;

NodeReport::NodeReport(kube::Client &client, std::string node, KubeletFiles files, CpuTopology topology, kube::Random random)
	: client_(client), node_(std::move(node)), files_(std::move(files)), order_(nvidia_driver), topology_(std::move(topology)), random_(std::move(random))
{
	watch();
	look();
}

NodeReport::~NodeReport()
{
	client_.loop().cancel_timer(timer_);
	client_.cancel(writing_);
}

static bool says_nothing(const std::map<std::string, std::string> &notes)
{
	return std::ranges::all_of(notes, [](const auto &note) { return note.second.empty(); });
}

void NodeReport::look()
{
	files_.look();
	const bool idle = !files_.cpus().pins() && files_.devices().healthy.empty();
	if (!idle && !reflector_)
		watch();
	if (idle && known_ && says_nothing(*known_))
		reflector_.reset();
	client_.loop().cancel_timer(timer_);
	timer_ = client_.loop().after(looks_again, [this] { look(); });
	write();
}

void NodeReport::watch()
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

void NodeReport::node_is(const kube::Node *node)
{
	known_.reset();
	if (node) {
		known_.emplace();
		for (const auto name : {core::names::pinned_cores, core::names::devices})
			(*known_)[std::string(name)] = core::annotation(*node, name);
		capacity_ = node->capacity;
	}
	write();
}

// Only when known_ is.
NodeReport::Notes NodeReport::wanted()
{
	const auto former = core::parse_devices(known_->at(std::string(core::names::devices)));
	Notes out;
	out[std::string(core::names::pinned_cores)] = core::pinned_text(pinned_pods(files_.cpus(), topology_));
	out[std::string(core::names::devices)] =
		core::devices_text(devices_to_tell(files_.devices(), former ? *former : core::NodeDevices(), capacity_, order_));
	for (auto &[name, text] : out)
		if (text.size() > longest_note) {
			log_limited(LogLevel::warning, node_, "agent: slurmctld is not told %s: %zu bytes are too many for an annotation",
				    name.c_str(), text.size());
			text.clear();
		}
	return out;
}

void NodeReport::write()
{
	if (writing_ || !known_)
		return;
	Notes sent = wanted();
	if (*known_ == sent)
		return;
	Json annotations = Json::object(), patch = Json::object();
	for (const auto &[name, text] : sent)
		if (known_->at(name) != text)
			annotations.set(name, text.empty() ? Json::null() : Json::string(text));
	patch.set("metadata", Json::object().set("annotations", annotations));
	writing_ = client_.patch(resource_path(kube::nodes_resource, {}, node_), kube::PatchType::merge, patch,
				 [this, sent = std::move(sent), told = one_line(annotations.dump(), longest_logged)](const kube::Reply &reply) {
		writing_ = 0;
		if (!reply.ok()) {
			log_limited(LogLevel::warning, node_, "agent: slurmctld is not told which cores and devices the kubelet keeps for pods: %s",
				    reply.error.c_str());
			return; // look() comes again
		}
		log_verbose("agent: slurmctld is told which cores and devices the kubelet keeps for pods: %s", told.c_str());
		known_ = sent;
		write();
	});
}

} // namespace sk8::agent
