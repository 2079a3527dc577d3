// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/node_report.h"

#include <algorithm>

#include "lib/base/log.h"
#include "lib/base/log_limit.h"
#include "lib/base/text.h"
#include "lib/core/lost_pods.h"
#include "lib/core/names.h"
#include "lib/core/node_state.h"

namespace sk8::agent {

// The kubelet frees CPUs of what has ended by and by (cpuManagerReconcilePeriod, 10 s).
static constexpr Millis looks_again{10'000};
static constexpr Millis longest_pause{60'000};
static constexpr Millis looks_for_lost{2'000}; // while any is asked for
// Of 256 KiB that all annotations of an object have together.
static constexpr auto lease_namespace = "kube-node-lease";
static constexpr std::size_t longest_time = 64;
static constexpr std::int64_t longest_lease = 3'600;
static constexpr auto nvidia_driver = "/proc/driver/nvidia";
static constexpr std::size_t longest_note = 100'000, longest_logged = 1'000;

NodeReport::NodeReport(kube::Client &client, std::string node, KubeletFiles files, CpuTopology topology,
		       const core::NumaCores &numa, PodCgroups cgroups, kube::Random random)
	: client_(client), node_(std::move(node)), files_(std::move(files)), order_(nvidia_driver), topology_(std::move(topology)),
	  numa_(core::numa_text(numa)), cgroups_(std::move(cgroups)), random_(std::move(random))
{
	watch();
	look();
}

NodeReport::~NodeReport()
{
	client_.loop().cancel_timer(timer_);
	client_.loop().cancel_timer(lost_timer_);
	client_.cancel(reading_lease_);
	client_.cancel(writing_);
}

void NodeReport::look()
{
	files_.look();
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
		for (const auto name : {core::names::pinned_cores, core::names::devices, core::names::numa, core::names::gone})
			(*known_)[std::string(name)] = core::annotation(*node, name);
		capacity_ = node->capacity;
	}
	lost_.ask(node ? core::parse_lost(core::annotation(*node, core::names::lost)) : std::set<std::string>());
	if (lost_.asked() && !lost_timer_ && !reading_lease_)
		ask_for_lease();
	write();
}

// The lease first: what is looked at afterwards is of a moment when the kubelet was heard of.
void NodeReport::ask_for_lease()
{
	lost_timer_ = 0;
	if (!lost_.asked())
		return;
	reading_lease_ = client_.get(resource_path(kube::leases_resource, lease_namespace, node_), [this](const kube::Reply &reply) {
		reading_lease_ = 0;
		look_for_lost(reply);
		lost_timer_ = client_.loop().after(looks_for_lost, [this] { ask_for_lease(); });
	});
}

std::optional<KubeletLease> parse_lease(const Json &lease)
{
	const Json spec = lease["spec"], renewed = spec["renewTime"];
	const std::int64_t seconds = spec["leaseDurationSeconds"].integer_or(0);
	if (renewed.str().empty() || renewed.str().size() > longest_time || seconds < 1 || seconds > longest_lease)
		return std::nullopt;
	return KubeletLease{std::string(renewed.str()), Millis(seconds * 1000)};
}

void NodeReport::look_for_lost(const kube::Reply &lease)
{
	const auto found = cgroups_.processes();
	const std::set<std::string> ran = lost_.running();
	if (found) {
		lost_.look({clock_.monotonic(), *found, pods_, lease.ok() ? parse_lease(lease.body) : std::nullopt});
	} else {
		lost_.blind();
		log_limited(LogLevel::warning, node_, "agent: nothing can be said of lost pods: %s", found.error().message.c_str());
	}
	for (const std::string &word : lost_.running())
		if (!ran.contains(word))
			log_info("agent: pod %s is lost for slurmctld, and runs here", std::string(core::uid_of_lost(word)).c_str());
	write();
}

// Only when known_ is.
NodeReport::Notes NodeReport::wanted()
{
	const auto former = core::parse_devices(known_->at(std::string(core::names::devices)));
	Notes out;
	out[std::string(core::names::pinned_cores)] = core::pinned_text(pinned_pods(files_.cpus(), topology_));
	const core::NodeDevices devices = devices_to_tell(files_.devices(), former ? *former : core::NodeDevices(), capacity_, order_);
	for (const auto &[resource, ids] : devices.ids)
		if (ids.empty())
			log_limited(LogLevel::warning, resource,
				    "agent: a device of %s is not well, and was not since this node is known: jobs cannot be told which ones of the "
				    "others they have, and wait until it is well or its device plugin does not count it any more",
				    resource.c_str());
	out[std::string(core::names::devices)] = core::devices_text(devices);
	out[std::string(core::names::numa)] = numa_;
	out[std::string(core::names::gone)] = core::lost_text(lost_.gone());
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
			log_limited(LogLevel::warning, node_, "agent: slurmctld is not told of pods' cores and devices, and of lost pods: %s",
				    reply.error.c_str());
			return; // look() comes again
		}
		log_verbose("agent: slurmctld is told of pods: %s", told.c_str());
		known_ = sent;
		write();
	});
}

} // namespace sk8::agent
