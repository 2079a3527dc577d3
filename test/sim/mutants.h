// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Deliberate mistakes, one at a time, that the judge must find: they prove the judge.
// Each is made at a border of the product (a port, a hook, the table of Slurm's
// functions), so that the product knows nothing of them.
#ifndef SK8_SIM_MUTANTS_H
#define SK8_SIM_MUTANTS_H

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/foreign_pod.h"
#include "lib/core/hold_journal.h"
#include "lib/core/kube_port.h"
#include "lib/core/slurm_port.h"
#include "test/sim/model_api.h"

namespace sk8::sim {

enum class Mutant {
	none,
	no_uid_precondition,
	grace_zero,
	no_finalizer,
	ack_before_answer,
	silence_is_absence,
	deletion_is_proof,
	strips_finalizers,
	relist_ignored,
	exit_code_lost,
	pod_end_not_told,
	job_end_not_forwarded,
	scheduler_not_woken,
	timers_lost,
	second_job,
	exclusion_overwritten,
	hold_not_flushed,
	ledger_not_loaded,
	no_leaving_mask,
	late_leaving_mask,
	mask_without_memory,
	adoption_masks_nothing,
	unknown_nodes_open,
	first_list_not_waited_for,
	list_since_ledger_not_waited_for,
	first_ledger_believed,
	word_forgotten,
	masks_let_go,
	foreign_not_masked,
	foreign_rounded_down,
	foreign_memory_not_masked,
	overhead_not_masked,
	overhead_set_aside_twice,
	foreign_end_ignored,
	foreign_phase_believed,
	foreign_deletion_is_proof,
	foreign_removal_is_proof,
	foreign_absence_is_proof,
	foreign_not_restored,
	foreign_not_saved,
	foreign_not_waited_for,
	cordon_taken_for_ours,
	uncordon_not_noticed,
	cordon_unseen,
	condition_unseen,
	not_ready_unseen,
	drain_not_told,
	drained_condition_untold,
	node_not_resumed,
	deleted_node_unseen,
	node_taken_by_force,
	settings_not_reread,
	marked_by_hand_unseen,
	gres_not_masked,
	gres_not_restored,
	devices_not_masked,
	foreign_gres_not_masked,
	owner_not_asked,
	old_job_stays_on_pod,
	never_made_again,
	age_lost,
	resubmits_not_saved,
	grace_unseen,
	grace_not_given,
	not_spared,
	preempted_as_cancelled,
	second_victim,
	second_native_victim,
	mirror_removal_is_proof,
	mirror_not_told_apart,
	gate_open,
	device_gate_open,
	gate_not_left,
	reservation_goes_early,
	device_pod_goes_early,
	reservation_not_deleted,
	seen_is_admitted,
	refusal_is_eviction,
	absence_is_eviction,
	eviction_requeues,
	eviction_ignored,
	covered_by_name,
	resize_believed,
	resize_unseen,
	foreign_resize_believed,
	smaller_believed,
	devices_untold,
	device_order,
	gate_devices_believed,
	pod_devices_believed,
	devices_not_learned,
	leaving_devices_open,
	claim_unshared,
	claim_unchecked,
	claim_guessed,
	claim_unreserved,
	full_not_told,
	overcommit_untold,
};

struct MutantInfo {
	Mutant id;
	const char *name, *what;
};
const std::vector<MutantInfo> &mutants(); // without none
std::optional<Mutant> mutant_named(const std::string &name); // "" is none

// Each takes what it stands before, which must outlive it.
std::unique_ptr<core::KubePort> mutate(Mutant m, core::KubePort &inner, ModelApi &api);
std::unique_ptr<core::SlurmPort> mutate(Mutant m, core::SlurmPort &inner);
std::unique_ptr<core::HoldJournal> mutate(Mutant m, std::unique_ptr<core::HoldJournal> inner);
kube::PodPtr mutate(Mutant m, kube::PodPtr pod);
kube::NodePtr mutate_node(Mutant m, kube::NodePtr node);
// What the controllers of pods see of nodes.
kube::NodePtr mutate_devices(Mutant m, kube::NodePtr node);
// The object of a foreign pod, and what the engine sees of it.
kube::PodPtr mutate_resized(Mutant m, kube::PodPtr pod);
core::ForeignPodPtr mutate_foreign(Mutant m, core::ForeignPodPtr pod);
// What the reservations see of pods.
core::ForeignPodPtr mutate_reservation(Mutant m, core::ForeignPodPtr pod);
core::ForeignPodPtr mutate_removed(Mutant m, core::ForeignPodPtr last);
// mutants_claims.cc: what the engine sees of claims; what Slurm sees of masks, beside what the engine knows; what is written.
kube::ResourceClaimPtr mutate_claim(Mutant m, kube::ResourceClaimPtr claim);
std::shared_ptr<const core::MaskSnapshot> mutate_shared(std::shared_ptr<const core::MaskSnapshot> masks,
							const core::Ledger &known);
Json mutate_claim_patch(Mutant m, const Json &patch);
std::shared_ptr<const core::MaskSnapshot> mutate(Mutant m, std::shared_ptr<const core::MaskSnapshot> masks);
// C has no context: one at a time in a process.
const sk8_slurm_ops &mutate(Mutant m, const sk8_slurm_ops &inner);
void mutate_devices(Mutant m, const sk8_slurm_ops &inner, sk8_slurm_ops &table);
void mutate_preemption(Mutant m, const sk8_slurm_ops &inner, sk8_slurm_ops &table);

} // namespace sk8::sim

#endif
