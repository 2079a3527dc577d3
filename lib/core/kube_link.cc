// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/kube_link.h"

#include "lib/base/text.h"
#include "lib/core/names.h"

namespace sk8::core {

using kube::Reply;
using kube::resource_path;

static const kube::ResourceType claims_resource{"", "v1", "persistentvolumeclaims"};
static const kube::ResourceType volumes_resource{"", "v1", "persistentvolumes"};
static const kube::ResourceType classes_resource{"storage.k8s.io", "v1", "storageclasses"};

static constexpr std::size_t max_message = 1024; // of an event, Kubernetes API reference v1.Event
static constexpr std::size_t max_condition = 2048;

static std::string pod_path(const PodKey &key, std::string_view subresource = {})
{
	return resource_path(kube::pods_resource, key.ns, key.name, subresource);
}

KubeReply kube_reply(const Reply &r)
{
	KubeReply out;
	out.status = r.ok() || r.status >= 300 ? r.status : 0; // an incomplete 2xx is no answer
	out.not_sent = r.not_sent;
	out.error = r.error;
	out.retry_after = r.retry_after;
	return out;
}

Json annotations_patch(const AnnotationChanges &changes)
{
	Json out = Json::object();
	for (const auto &[name, value] : changes)
		out.set(name, value ? Json::string(*value) : Json::null());
	return out;
}

static kube::Client::Done answer(KubePort::Done done)
{
	return [done = std::move(done)](Reply r) { done(kube_reply(r)); };
}

// ... with the object that it has, as this member of the reply.
template <class Ptr>
static kube::Client::Done answer_with(Ptr KubeReply::*member, Result<Ptr> (*decode)(const Json &), KubePort::Done done)
{
	return [member, decode, done = std::move(done)](Reply r) {
		KubeReply out = kube_reply(r);
		if (r.ok()) {
			auto object = decode(r.body);
			if (object)
				out.*member = std::move(*object);
			else
				out = {.error = object.error().message};
		}
		done(out);
	};
}

static kube::Client::Done answer_with_pod(KubePort::Done done)
{
	return answer_with(&KubeReply::pod, kube::decode_pod, std::move(done));
}

void KubeLink::get_pod(const PodKey &key, Done done)
{
	client_.get(pod_path(key), answer_with_pod(std::move(done)));
}

void KubeLink::get_manifest(const PodKey &key, Manifest done)
{
	client_.get(pod_path(key), [done = std::move(done)](Reply r) { done(kube_reply(r), r.ok() ? r.body : Json()); });
}

void KubeLink::create_pod(const std::string &ns, const Json &object, Done done)
{
	client_.create(resource_path(kube::pods_resource, ns), object, answer_with_pod(std::move(done)));
}

// Strategic merge: finalizers are a set there, so no other finalizer is touched and
// none has to be known. The uid makes it fail for another pod of the same name.
void KubeLink::set_finalizer(const PodKey &key, bool present, Done done)
{
	Json list = Json::array();
	list.append(Json::string(names::finalizer));
	Json meta = Json::object();
	meta.set("uid", key.uid);
	meta.set(present ? "finalizers" : "$deleteFromPrimitiveList/finalizers", list);
	Json patch = Json::object();
	patch.set("metadata", meta);
	client_.patch(pod_path(key), kube::PatchType::strategic, patch, answer(std::move(done)),
		      kube::Priority::urgent);
}

void KubeLink::bind(const PodKey &key, const std::string &node,
		    const std::map<std::string, std::string> &annotations, Done done)
{
	Json notes = Json::object();
	for (const auto &[k, v] : annotations)
		notes.set(k, v);
	Json meta = Json::object();
	meta.set("namespace", key.ns).set("name", key.name).set("uid", key.uid);
	meta.set("annotations", notes);
	Json target = Json::object();
	target.set("apiVersion", "v1").set("kind", "Node").set("name", node);
	Json body = Json::object();
	body.set("apiVersion", "v1").set("kind", "Binding").set("metadata", meta);
	body.set("target", target);
	client_.create(pod_path(key, "binding"), body, answer(std::move(done)), kube::Priority::urgent);
}

void KubeLink::annotate_pod(const PodKey &key, const AnnotationChanges &changes, Done done)
{
	Json patch = Json::object();
	patch.set("metadata", Json::object().set("uid", key.uid).set("annotations", annotations_patch(changes)));
	client_.patch(pod_path(key), kube::PatchType::merge, patch, answer(std::move(done)));
}

void KubeLink::delete_pod(const PodKey &key, const Deletion &how, Done done)
{
	Json only = Json::object();
	only.set("uid", key.uid);
	if (!how.if_version.empty())
		only.set("resourceVersion", how.if_version);
	Json options = Json::object();
	options.set("apiVersion", "v1").set("kind", "DeleteOptions");
	options.set("gracePeriodSeconds", Json::integer(how.grace_seconds)).set("preconditions", only);
	client_.delete_(pod_path(key), options, answer(std::move(done)));
}

void KubeLink::set_condition(const PodKey &key, const std::string &resource_version,
			     const PodCondition &condition, Done done)
{
	Json c = Json::object();
	c.set("type", "PodScheduled").set("status", "False").set("reason", condition.reason);
	c.set("message", one_line(condition.message, max_condition));
	Json list = Json::array();
	list.append(c);
	Json status = Json::object();
	status.set("conditions", list);
	Json meta = Json::object();
	meta.set("uid", key.uid).set("resourceVersion", resource_version);
	Json patch = Json::object();
	patch.set("metadata", meta).set("status", status);
	client_.patch(pod_path(key, "status"), kube::PatchType::strategic, patch, answer(std::move(done)),
		      kube::Priority::low);
}

void KubeLink::create_event(const PodKey &key, const PodEvent &event, Done done)
{
	const std::string now = format_rfc3339(event.time_us / 1'000'000);
	Json object = Json::object();
	object.set("apiVersion", "v1").set("kind", "Pod").set("namespace", key.ns);
	object.set("name", key.name).set("uid", key.uid);
	Json meta = Json::object();
	// As client-go names them: unique without asking, the same when it is sent again.
	meta.set("namespace", key.ns);
	meta.set("name",
		 key.name.substr(0, 200) + strprintf(".%llx", static_cast<unsigned long long>(event.time_us)));
	Json source = Json::object();
	source.set("component", names::component);
	Json body = Json::object();
	body.set("apiVersion", "v1").set("kind", "Event").set("metadata", meta);
	body.set("involvedObject", object).set("source", source);
	body.set("type", event.warning ? "Warning" : "Normal").set("reason", event.reason);
	body.set("message", one_line(event.message, max_message));
	body.set("firstTimestamp", now).set("lastTimestamp", now).set("count", Json::integer(1));
	body.set("reportingComponent", names::component);
	client_.create(resource_path(kube::events_resource, key.ns), body, answer(std::move(done)),
		      kube::Priority::low);
}

void KubeLink::patch_claim(const kube::ResourceClaim &claim, bool status, const Json &patch, Done done)
{
	const auto path = resource_path(kube::resource_claims_resource, claim.meta.ns, claim.meta.name, status ? "status" : "");
	client_.patch(path, kube::PatchType::merge, patch, answer_with(&KubeReply::claim, kube::decode_resource_claim, std::move(done)),
		      kube::Priority::urgent);
}

// ---- volumes ----

// One claim after the other: claim -> its volume -> the volume's nodes.
struct KubeLink::VolumeWalk {
	PodKey key;
	std::vector<std::string> claims;
	std::size_t at = 0;
	Volumes out;
	std::function<void(const Volumes &)> done;

	void fail(bool retry, std::string error)
	{
		out.retry = retry;
		out.error = std::move(error);
		done(out);
	}
};

void KubeLink::get_volumes(const PodKey &key, const std::vector<std::string> &claims,
			   std::function<void(const Volumes &)> done)
{
	auto walk = std::make_shared<VolumeWalk>();
	walk->key = key;
	walk->claims = claims;
	walk->done = std::move(done);
	next_claim(std::move(walk));
}

void KubeLink::next_claim(std::shared_ptr<VolumeWalk> walk)
{
	if (walk->at == walk->claims.size())
		return walk->done(walk->out);
	const std::string claim = walk->claims[walk->at++];
	client_.get(resource_path(claims_resource, walk->key.ns, claim), [this, walk, claim](Reply r) {
		if (r.status == 404)
			return walk->fail(true, "persistentvolumeclaim " + claim + " does not exist");
		if (!r.ok())
			return walk->fail(true, r.error);
		const std::string volume(r.body["spec"]["volumeName"].str());
		if (r.body["status"]["phase"].str() == "Bound" && !volume.empty())
			return read_volume(walk, volume);
		read_class(walk, claim, std::string(r.body["spec"]["storageClassName"].str()));
	});
}

void KubeLink::read_volume(std::shared_ptr<VolumeWalk> walk, const std::string &volume)
{
	client_.get(resource_path(volumes_resource, {}, volume), [this, walk](Reply r) {
		if (!r.ok())
			return walk->fail(true, r.error);
		const Json required = r.body["spec"]["nodeAffinity"]["required"];
		if (!required.is_null()) {
			std::string problem;
			walk->out.terms.push_back(kube::decode_node_terms(required["nodeSelectorTerms"], problem));
			if (!problem.empty())
				return walk->fail(false, "a volume's nodeAffinity: " + problem);
		}
		next_claim(walk);
	});
}

void KubeLink::read_class(std::shared_ptr<VolumeWalk> walk, const std::string &claim, const std::string &name)
{
	const std::string unbound = "persistentvolumeclaim " + claim + " is not bound";
	if (name.empty())
		return walk->fail(true, unbound);
	client_.get(resource_path(classes_resource, {}, name), [walk, claim, unbound](Reply r) {
		if (!r.ok() && r.status != 404)
			return walk->fail(true, r.error); // the right may be missing: it is named
		if (r.ok() && r.body["volumeBindingMode"].str() == bound_when_placed)
			return walk->fail(false, unbound + " and its storage class binds it only when the pod is "
							   "placed (" + std::string(bound_when_placed) + "), which is not supported yet");
		walk->fail(true, unbound);
	});
}

} // namespace sk8::core
