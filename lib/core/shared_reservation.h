// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The reservation pod that the small jobs of a node share: what it is, and what is done with it
// next. Pure.
#ifndef SK8_CORE_SHARED_RESERVATION_H
#define SK8_CORE_SHARED_RESERVATION_H

#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/core/native_job.h"
#include "lib/core/settings.h"

namespace sk8::core {

// What jobs have of a node, or a pod requests there.
struct Amount {
	std::int64_t milli_cpu = 0, memory_bytes = 0;

	Amount &operator+=(const Amount &more);
	bool covers(const Amount &other) const { return milli_cpu >= other.milli_cpu && memory_bytes >= other.memory_bytes; }
	bool operator==(const Amount &) const = default;
};

Amount amount_of(const NativeShare &share);
// What the pod requests for it: never nothing, since a resize may not change the class of its quality
// of service.
Amount request_for(Amount jobs);
Json requests_of(const Amount &amount); // {"cpu": "3", "memory": "300Mi"}

// "slurm-shared-n1"
std::string shared_reservation_name(const std::string &node);
// The node in such a name; empty: it is none.
std::string node_of_shared_reservation(std::string_view name);

// May it be in a pod with others? A device makes it a pod of its own: which one it gets is said to a container.
bool may_share(const NativeShare &share, const ReservationSettings &settings);

// "7,8,9", or with very many "7,8 and 3000 more". Sorted.
std::string job_list(const std::vector<std::uint32_t> &ids);

Json shared_reservation_object(const std::string &node, const Amount &jobs, const std::string &job_list,
			       const ReservationSettings &settings);

struct SharedFacts {
	bool wanted = false;    // some job in it runs, or wants to
	bool used = false;      // or has processes left
	bool lingers = false;   // nobody uses it, and somebody may come soon
	bool exists = false;
	bool ours = false;      // that object
	bool over = false;
	bool deleting = false;
	bool removing = false;  // our DELETE of it may yet arrive
	bool fits = false;      // it requests what its jobs have
	bool resizes = true;    // API server and kubelet can do that
	bool listed = false;    // its annotation names its jobs
};
enum class SharedStep { none, create, resize, annotate, remove };
SharedStep next_step(const SharedFacts &facts);

} // namespace sk8::core

#endif
