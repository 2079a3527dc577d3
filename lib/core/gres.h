// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Slurm's GRES as plain values: what a job has, what a pod holds; and which of
// Kubernetes' extended resources are which. Pure.
#ifndef SK8_CORE_GRES_H
#define SK8_CORE_GRES_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/result.h"
#include "lib/core/settings.h"
#include "lib/sk8_abi.h"

namespace sk8::core {

// As struct sk8_gres.
struct Gres {
	std::string name, type;
	std::uint64_t count = 0;
	std::vector<std::uint16_t> devices; // sorted; fewer than count: the others are not known

	auto operator<=>(const Gres &) const = default;
};
using GresList = std::vector<Gres>;

// Far above any node; what a hostile file or pod may say at most.
inline constexpr std::size_t max_gres = 64;
inline constexpr std::size_t max_gres_devices = 4096;
inline constexpr std::int64_t max_gres_count = 1'000'000;

// Empty, or what is wrong with a name or a type of GRES: Slurm lists them with ',', ':' and '='.
std::string bad_gres_word(const std::string &word);
// Empty, or what is wrong with the name of a class's device files, "/dev/nvidia%d": it becomes a part of gres.conf.
std::string bad_device_file(const std::string &file);

GresList gres_from_abi(const sk8_gres *gres, std::uint32_t count); // copies
std::vector<sk8_gres> gres_to_abi(const GresList &gres);           // borrows of gres

// "gpu:a100:2(0-1),token:3": for people, and for annotations
std::string gres_text(const GresList &gres);
// "gpu:a100:2,token:3": as a request
std::string gres_request(const GresList &gres);
// "0-1,5"
std::string index_list(const std::vector<std::uint16_t> &indices);

Json gres_to_json(const GresList &gres);
std::optional<GresList> gres_from_json(const Json &list); // null: none; nullopt: it makes no sense

// The known devices of all types of this name, sorted.
std::vector<std::uint16_t> devices_named(const GresList &gres, const std::string &name);

// How many of this name, of all types or of one; "" is that of those without one.
std::uint64_t count_of(const GresList &gres, std::string_view name, std::optional<std::string_view> type = std::nullopt);

// Adds those of the same name, type and devices up, in order. Devices that are not known are one entry.
GresList merged(GresList gres);
// Slurm's own names of what several jobs have of one device.
bool is_shared_gres(const std::string &name);
// Do two pods have one device, both of them whole?
bool devices_collide(const GresList &a, const GresList &b);

// The mapping of this resource: of the settings, else our own (nvidia.com/gpu, amd.com/gpu); or null.
const ResourceSettings *find_resource(const std::vector<ResourceSettings> &settings, std::string_view kubernetes);
// The settings, and our own of which they say nothing: not of the resource, nor by a deviceClass whose devices are the same GRES.
std::vector<ResourceSettings> with_own(std::vector<ResourceSettings> settings);
// What these extended resources are in Slurm; of those that have no mapping nothing.
GresList gres_of(const std::map<std::string, std::int64_t> &extended, const std::vector<ResourceSettings> &settings);

// The other way round: which of these resources this GRES is, as far as the settings name them
// and the node has them (allocatable). A slice of a GPU, a type that is a resource of its own there, is none of the GPUs.
std::map<std::string, std::int64_t> extended_of(const GresList &gres, const std::vector<ResourceSettings> &settings,
						const std::map<std::string, std::int64_t> &allocatable);
// Those of the resources that only Kubernetes knows (k8s_gres), "a.io/x,b.io/y": Slurm tells steps nothing of them.
std::string step_devices(const std::map<std::string, std::int64_t> &resources, const std::vector<ResourceSettings> &settings);
// Is any of it of a resource that the settings name?
bool is_named(const GresList &gres, const std::vector<ResourceSettings> &settings);
// Is it a part of the other, whichever devices?
bool is_part_of(const GresList &part, const GresList &whole);

} // namespace sk8::core

#endif
