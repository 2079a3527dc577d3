// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the judge knows of devices that pods claim (Case::claims):
//
//   * No job starts in Slurm with a device that a running pod for Slurm has by its claims, be it its own or one that several pods
//     have, whatever has become of their jobs and of the claim; nor with one that a foreign pod has, from the moment when the
//     engine is told of the pod, of its claim and of the driver, until the pod's last container is gone; also across the end of
//     slurmctld, if it was in the saved ledger.
//   * No pod for Slurm starts with a device that a process of a job of Slurm's own has, or another pod for Slurm, unless the two
//     have one claim.
//   * The engine writes no device into a claim that another claim has, as far as it has been told.
//   * When a Binding is sent the pod's claims are there, have devices and are for it; those that are for it alone have just the
//     devices of its job in Slurm. And so it is a minute later, also of a pod that was found running.
//   * In the end no claim has devices or is for a pod, and none of a template is left.
//
// The windows that the design leaves, in which nothing is demanded:
//
//   * kube-scheduler knows of claims and of nothing that Slurm does: a foreign pod may get a device that a job has, and with it
//     the pods for Slurm that share its claim, or one that the engine is writing into another claim before it is told.
//   * The engine looks at slices and at lists of claims when its turn ends, some milliseconds after it has read them.
//   * StateSaveLocation is lost, and what a pod has can be read from no claim: its driver is away, or the claim was freed since
//     somebody had declared the pod to have failed.
#ifndef SK8_SIM_JUDGE_CLAIMS_H
#define SK8_SIM_JUDGE_CLAIMS_H

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "test/sim/judge.h"

namespace sk8::sim {

class Judge::Claims {
public:
	Claims(Judge &judge, const ModelClaims &claims, const ClaimWatch &watch) : judge_(judge), claims_(claims), watch_(watch) {}

	// The engine has been told, and knows what follows for this pod, for those that have this claim, for all.
	void foreign_told(const std::string &uid);
	void claim_told(const kube::ResourceClaim &claim);
	void all_served();
	void engine_starts();
	void job_started(const SlurmJob &job);
	void container_started(const Container &c);
	void patch_sent(const kube::ResourceClaim &claim, const Json &patch);
	void binding_sent(const core::PodKey &key);
	void crashed(const core::Ledger &on_disk);
	void state_lost();
	void check();
	std::string unfinished(bool excused) const;
	std::int64_t missing(const std::string &node) const; // devices that no job is to get, as far as the engine was told

private:
	using Devices = std::vector<std::uint16_t>;
	Devices devices_of(const PodTruth &t, const std::string &uid, const ClaimMap &claims, const SliceMap &slices) const;
	void told_of(const std::string &uid);
	bool cannot_be_read(const Container &c) const;
	bool given_by_others(const Container &c) const;
	bool share_a_claim(const Container &a, const Container &b) const;
	void check_devices(const Container &c);
	bool has_claims_alone(const Container &c) const;
	void note_shared();

	Judge &judge_;
	const ModelClaims &claims_;
	const ClaimWatch &watch_;
	std::set<std::string> seen_; // uids of foreign pods that the engine which is there was told of
	std::set<std::string> served_; // nodes of whose devices it was told by the end of its last turn in which it looked
	std::set<std::pair<ClaimName, std::string>> shared_; // ... and pods for Slurm that got a part of what another one has
	std::map<ClaimName, std::vector<kube::AllocatedDevice>> given_; // by us, the last time
	Micros looked_at_ = 0;
};

} // namespace sk8::sim

#endif
