// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// ReservationPort on a kube::Client: the requests and nothing else.
#ifndef SK8_CORE_RESERVATION_LINK_H
#define SK8_CORE_RESERVATION_LINK_H

#include "lib/core/kube_link.h"
#include "lib/core/reservation_port.h"

namespace sk8::core {

class ReservationLink final : public ReservationPort {
public:
	explicit ReservationLink(kube::Client &client) : client_(client), pods_(client) {}

	void create_pod(const std::string &ns, const Json &object, Created done) override
	{
		client_.create(
			resource_path(kube::pods_resource, ns), object,
			[done = std::move(done)](kube::Reply r) {
				done(kube_reply(r), r.ok() ? std::string(r.body["metadata"]["uid"].str()) : "");
			},
			kube::Priority::urgent);
	}
	void delete_pod(const PodKey &key, std::int64_t grace_seconds, KubePort::Done done) override
	{
		pods_.delete_pod(key, {grace_seconds, ""}, std::move(done));
	}

private:
	kube::Client &client_;
	KubeLink pods_;
};

} // namespace sk8::core

#endif
