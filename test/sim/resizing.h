// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// How far the resize in place of a pod has come (KEP-1287), which kube::Pod has no member for: it is in an
// annotation of the model's own. And what the engine reads of such a pod.
#ifndef SK8_SIM_RESIZING_H
#define SK8_SIM_RESIZING_H

#include "lib/base/json.h"
#include "lib/core/foreign_pod.h"
#include "test/sim/story.h"

namespace sk8::sim {

struct Resizing {
	std::int64_t generation = 1;
	std::int64_t milli_cpu = 0, memory_bytes = 0; // spec
	// status
	std::int64_t seen = 0; // the generation that its kubelet had seen then; 0: it has told nothing
	std::int64_t has_milli_cpu = 0, has_memory_bytes = 0;
	bool put_off = false;
};

bool is_resizable(const kube::Pod &pod);
Resizing resizing_of(const kube::Pod &pod);
void set_resizing(kube::Pod &pod, const Resizing &resizing); // and what Kubernetes counts for it
// Its spec requests this from now on.
void ask_for(kube::Pod &pod, std::int64_t milli_cpu, std::int64_t memory_bytes);

// As decode_foreign_pod() of the object that the API server would show.
core::ForeignPodPtr foreign_pod_seen(const kube::Pod &pod);

} // namespace sk8::sim

#endif
