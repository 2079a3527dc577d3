// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the reservations controller asks of the Kubernetes API; as KubePort.
#ifndef SK8_CORE_RESERVATION_PORT_H
#define SK8_CORE_RESERVATION_PORT_H

#include "lib/base/json.h"
#include "lib/core/foreign_pod.h"
#include "lib/core/kube_port.h"

namespace sk8::core {

class ReservationPort {
public:
	virtual ~ReservationPort() = default;
	// uid: of the pod that was made; else empty.
	using Created = std::function<void(const KubeReply &, const std::string &uid)>;

	virtual void create_pod(const std::string &ns, const Json &object, Created done) = 0;
	// Its requests in place (pods/resize), if it is still the version that was read. pod: what it is then.
	enum class Resizes { yes, not_node, not_server }; // not_node: nor anything else that was asked for
	using Resized = std::function<void(const KubeReply &, Resizes, const ForeignPodPtr &pod)>;
	virtual void resize_pod(const PodKey &key, const std::string &version, const Json &requests, Resized done) = 0;
	// Refused (409) as the next one.
	virtual void annotate_pod(const PodKey &key, std::string_view name, const std::string &value, KubePort::Done done) = 0;
	// What its kubelet has last said of a volume that it cannot mount, or kube-controller-manager of a claim that it cannot make from
	// its template: only its events tell. Empty: nothing is known.
	enum class Lacks { volume, claim };
	virtual void find_trouble(const PodKey &key, Lacks what, std::function<void(const std::string &message)> done) = 0;
	// Refused (409) if the pod of this name has another uid.
	virtual void delete_pod(const PodKey &key, std::int64_t grace_seconds, KubePort::Done done) = 0;
};

} // namespace sk8::core

#endif
