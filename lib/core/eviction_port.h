// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the controller of exclusive nodes asks of the Kubernetes API; as KubePort.
#ifndef SK8_CORE_EVICTION_PORT_H
#define SK8_CORE_EVICTION_PORT_H

#include "lib/core/kube_port.h"

namespace sk8::core {

class EvictionPort {
public:
	virtual ~EvictionPort() = default;
	// pods/eviction: the pod is deleted with its own grace, unless a PodDisruptionBudget forbids it (429). Refused (409)
	// if the pod of this name has another uid.
	virtual void evict_pod(const PodKey &key, KubePort::Done done) = 0;
};

} // namespace sk8::core

#endif
