// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// EvictionPort on a kube::Client: the request and nothing else.
#ifndef SK8_CORE_EVICTION_LINK_H
#define SK8_CORE_EVICTION_LINK_H

#include "lib/core/eviction_port.h"
#include "lib/core/kube_link.h"

namespace sk8::core {

class EvictionLink final : public EvictionPort {
public:
	explicit EvictionLink(kube::Client &client) : client_(client) {}

	void evict_pod(const PodKey &key, KubePort::Done done) override
	{
		Json body = Json::object();
		body.set("apiVersion", "policy/v1").set("kind", "Eviction");
		body.set("metadata", Json::object().set("name", key.name).set("namespace", key.ns));
		body.set("deleteOptions", Json::object().set("preconditions", Json::object().set("uid", key.uid)));
		client_.create(resource_path(kube::pods_resource, key.ns, key.name, "eviction"), body,
			       [done = std::move(done)](kube::Reply r) { done(kube_reply(r)); });
	}

private:
	kube::Client &client_;
};

} // namespace sk8::core

#endif
