// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Mistakes about what the engine sees of Kubernetes, and Slurm of masks.
#include "test/sim/mutants.h"

#include "lib/core/names.h"
#include "lib/core/node_state.h"
#include "test/sim/config.h"
#include "test/sim/resizing.h"

namespace sk8::sim {

// A pod has one core for its job to begin with, at least.
static kube::PodPtr unresized(kube::PodPtr pod)
{
	if (!is_resizable(*pod) || pod->node_name.empty())
		return pod;
	auto copy = std::make_shared<kube::Pod>(*pod);
	copy->request.milli_cpu = 1000;
	copy->request.memory_bytes = 1 << 20;
	return copy;
}

kube::PodPtr mutate(Mutant m, kube::PodPtr pod)
{
	if (m == Mutant::resize_unseen)
		return unresized(std::move(pod));
	if (m != Mutant::deletion_is_proof || !pod->meta.deleting || pod->started_at == 0)
		return pod;
	auto copy = std::make_shared<kube::Pod>(*pod);
	copy->phase = "Failed";
	for (auto &c : copy->containers)
		c.state = kube::ContainerStatus::State::terminated;
	return copy;
}

// What the administrator of Kubernetes, a kubelet or node-problem-detector says of it.
static kube::NodePtr unseen(Mutant m, const kube::NodePtr &node)
{
	auto out = std::make_shared<kube::Node>(*node);
	if (m == Mutant::cordon_unseen)
		out->unschedulable &= core::annotation(*node, core::names::drain_owner) == core::names::drain_owner_slurm;
	if (m == Mutant::condition_unseen)
		std::erase_if(out->conditions, [](const auto &c) { return c.type == chosen_condition; });
	if (m == Mutant::not_ready_unseen)
		out->ready = true;
	return out;
}

kube::NodePtr mutate_node(Mutant m, kube::NodePtr node)
{
	if (m == Mutant::cordon_unseen || m == Mutant::condition_unseen || m == Mutant::not_ready_unseen)
		return unseen(m, node);
	const bool claims = m == Mutant::cordon_taken_for_ours && node->unschedulable;
	const bool forgets = m == Mutant::uncordon_not_noticed && !node->unschedulable;
	if (!claims && !forgets)
		return node;
	auto out = std::make_shared<kube::Node>(*node);
	if (claims)
		out->meta.annotations[std::string(core::names::drain_owner)] = core::names::drain_owner_slurm;
	else
		for (auto name : {core::names::drain_owner, core::names::drain_reason})
			out->meta.annotations.erase(std::string(name));
	return out;
}

static kube::PodPtr admitted(kube::PodPtr pod)
{
	if (pod->started_at == 0 || pod->phase == "Failed" || pod->phase == "Succeeded")
		return pod;
	auto copy = std::make_shared<kube::Pod>(*pod);
	copy->admitted = true;
	return copy;
}

kube::PodPtr mutate_resized(Mutant m, kube::PodPtr pod)
{
	if (m == Mutant::seen_is_admitted)
		return admitted(std::move(pod));
	if (m != Mutant::foreign_resize_believed || !is_resizable(*pod))
		return pod;
	auto copy = std::make_shared<kube::Pod>(*pod);
	Resizing r = resizing_of(*copy);
	r.has_milli_cpu = r.milli_cpu;
	r.has_memory_bytes = r.memory_bytes;
	set_resizing(*copy, r);
	return copy;
}

core::ForeignPodPtr mutate_foreign(Mutant m, core::ForeignPodPtr pod)
{
	auto out = std::make_shared<core::ForeignPod>(*pod);
	switch (m) {
	case Mutant::foreign_rounded_down:
		out->milli_cpu -= out->milli_cpu % 1000;
		break;
	case Mutant::foreign_memory_not_masked:
		out->memory_bytes = 0;
		break;
	case Mutant::smaller_believed:
		out->unheard = false;
		break;
	case Mutant::foreign_gres_not_masked:
		out->extended.clear();
		break;
	case Mutant::leaving_devices_open:
		if (pod->meta.deleting)
			out->extended.clear();
		break;
	case Mutant::foreign_end_ignored:
		out->over = false;
		break;
	case Mutant::foreign_phase_believed:
		out->over = pod->phase == "Succeeded" || pod->phase == "Failed";
		break;
	case Mutant::mirror_not_told_apart:
		out->mirror = out->overhead = false;
		break;
	case Mutant::foreign_deletion_is_proof:
		out->over |= pod->meta.deleting;
		break;
	default:
		return pod;
	}
	return out;
}

core::ForeignPodPtr mutate_reservation(Mutant m, core::ForeignPodPtr pod)
{
	if (m == Mutant::resize_believed && pod->shared) {
		auto out = std::make_shared<core::ForeignPod>(*pod);
		core::SharedPod shared = *pod->shared;
		shared.resize.allocated = shared.resize.asked;
		shared.resize.pending = kube::Resize::Pending::no;
		out->shared = std::make_shared<core::SharedPod>(std::move(shared));
		return out;
	}
	if (m != Mutant::refusal_is_eviction || !pod->over || !pod->reason.starts_with("Out"))
		return pod;
	auto out = std::make_shared<core::ForeignPod>(*pod);
	out->reason = "Evicted";
	out->disruption = kube::Disruption::kubelet;
	return out;
}

core::ForeignPodPtr mutate_removed(Mutant m, core::ForeignPodPtr last)
{
	if (m != Mutant::foreign_removal_is_proof && !(m == Mutant::mirror_removal_is_proof && last->mirror))
		return mutate_foreign(m, std::move(last));
	auto out = std::make_shared<core::ForeignPod>(*last);
	out->over = true;
	return out;
}

static void spoil(Mutant m, core::NodeMask &mask)
{
	switch (m) {
	case Mutant::mask_without_memory:
		mask.memory_mb = 0;
		break;
	case Mutant::adoption_masks_nothing:
		mask.more_cores = 0;
		break;
	case Mutant::foreign_not_masked:
		mask.milli_cpu = 0;
		break;
	case Mutant::overhead_not_masked:
		mask.overhead_milli_cpu = 0;
		mask.overhead_mb = 0;
		break;
	case Mutant::gres_not_masked:
		mask.gres.clear();
		break;
	case Mutant::devices_not_masked:
		for (auto &gres : mask.gres)
			gres.devices.clear();
		break;
	case Mutant::overhead_set_aside_twice:
		mask.allocatable.milli_cpu *= 2;
		mask.allocatable.memory_mb *= 2;
		break;
	default:
		break;
	}
}

std::shared_ptr<const core::MaskSnapshot> mutate(Mutant m, std::shared_ptr<const core::MaskSnapshot> masks)
{
	if (!masks || m == Mutant::none)
		return masks;
	auto copy = std::make_shared<core::MaskSnapshot>(*masks);
	for (auto &known : copy->masks) {
		core::NodeMask mask = *known;
		spoil(m, mask);
		known = std::make_shared<core::NodeMask>(std::move(mask));
	}
	return copy;
}

} // namespace sk8::sim
