// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What a pod says about its job in annotations: its owner's wishes, by our own keys and those of
// slurm-bridge and SUNK, so that manifests written for them work unchanged; and what it got. Pure.
#ifndef SK8_CORE_ANNOTATIONS_H
#define SK8_CORE_ANNOTATIONS_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "lib/base/result.h"
#include "lib/core/job.h"
#include "lib/kube/objects.h"

namespace sk8::core {

// Wishes, not rights: identify() decides about the first group.
struct Wishes {
	std::optional<std::string> account, partition, qos, reservation, licenses;
	std::optional<std::string> user_id, group_id;

	std::optional<std::string> job_name, comment, wckey, features;
	std::optional<std::uint32_t> time_limit_minutes;
	std::optional<std::int64_t> milli_cpu, memory_bytes;
	std::optional<bool> requeue; // made again when Slurm takes it its node
};

// An annotation that we know but cannot do (for example gres) is an error, so
// that nobody believes that it works; so is a value that cannot be read.
// When a key is given in several vocabularies, ours wins, then slurm-bridge's.
Result<Wishes> read_wishes(const kube::Pod &pod);

// By name; no value: taken away. Others stay.
using AnnotationChanges = std::map<std::string, std::optional<std::string>>;

// What a pod's object says of its running job: names::of_binding, by name.
std::map<std::string, std::string> job_annotations(const Job &job);

} // namespace sk8::core

#endif
