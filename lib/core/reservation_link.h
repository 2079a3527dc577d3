// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// ReservationPort on a kube::Client: the requests and nothing else.
#ifndef SK8_CORE_RESERVATION_LINK_H
#define SK8_CORE_RESERVATION_LINK_H

#include "lib/core/kube_link.h"
#include "lib/core/reservation.h"
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
	void resize_pod(const PodKey &key, const std::string &version, const Json &requests, Resized done) override
	{
		Json container = Json::object(), containers = Json::array(), patch = Json::object();
		container.set("name", reservation_container).set("resources", Json::object().set("requests", requests));
		containers.append(container);
		patch.set("metadata", Json::object().set("uid", key.uid).set("resourceVersion", version));
		patch.set("spec", Json::object().set("containers", containers));
		client_.patch(
			resource_path(kube::pods_resource, key.ns, key.name, "resize"), kube::PatchType::strategic, patch,
			[done = std::move(done)](kube::Reply r) {
				auto pod = r.ok() ? decode_foreign_pod(r.body) : Result<ForeignPodPtr>(ForeignPodPtr());
				done(kube_reply(r), resizes(r), pod ? *pod : nullptr);
			},
			kube::Priority::urgent);
	}
	void annotate_pod(const PodKey &key, std::string_view name, const std::string &value, KubePort::Done done) override
	{
		pods_.annotate_pod(key, {{std::string(name), value}}, std::move(done));
	}
	void find_trouble(const PodKey &key, Lacks what, std::function<void(const std::string &)> done) override
	{
		const std::string reason = what == Lacks::volume ? "FailedMount" : "FailedResourceClaimCreation";
		struct Last {
			std::string time, message; // RFC 3339 in UTC: texts are in the order of times
		};
		auto last = std::make_shared<Last>();
		client_.list(
			resource_path(kube::events_resource, key.ns),
			{{"fieldSelector", "involvedObject.uid=" + key.uid + ",reason=" + reason}, {"limit", "100"}},
			[last](std::string_view text) {
				const auto event = Json::parse(text);
				const std::string time(event ? (*event)["lastTimestamp"].str() : "");
				if (time >= last->time && event)
					*last = {time, std::string((*event)["message"].str())};
			},
			[this, ns = key.ns, last, done = std::move(done)](const kube::Reply &) mutable {
				explain(ns, last->message, std::move(done));
			});
	}
	void delete_pod(const PodKey &key, std::int64_t grace_seconds, KubePort::Done done) override
	{
		pods_.delete_pod(key, {grace_seconds, ""}, std::move(done));
	}

private:
	// Of a claim that is not bound its kubelet does not know whether it ever will be.
	void explain(const std::string &ns, const std::string &message, std::function<void(const std::string &)> done)
	{
		const std::string claim = unbound_claim(ns, message);
		if (claim.empty())
			return done(message);
		pods_.get_volumes({{}, ns, {}, {}}, {claim}, [message, done = std::move(done)](const KubePort::Volumes &v) {
			done(v.error.empty() || v.retry ? message : v.error);
		});
	}

	// An API server that knows no such subresource (before 1.33) does not name the object that it has not
	// found; one that knows refuses it as invalid for a kubelet that does not.
	static Resizes resizes(const kube::Reply &r)
	{
		if (r.status == 404 && r.body["details"]["name"].str().empty())
			return Resizes::not_server;
		return r.status == 422 ? Resizes::not_node : Resizes::yes;
	}

	kube::Client &client_;
	KubeLink pods_;
};

} // namespace sk8::core

#endif
