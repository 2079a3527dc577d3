// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// pods/binding, as BindingREST of Kubernetes does it.
#include "test/kubesim/api.h"
#include "test/kubesim/pod.h"

namespace kubesim {

static Refusal check_precondition(const Object &pod, const J &binding)
{
	auto failed = [&](const char *what, const std::string &asked, const std::string &is) {
		return conflict("", "pods", pod.name,
				"StorageError: invalid object, Code: 4, Key: /registry/pods/" + pod.key() +
					", ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: " + what +
					" in precondition: " + asked + ", " + what + " in object meta: " + is);
	};
	const std::string uid = binding.path("metadata.uid").str();
	const std::string rv = binding.path("metadata.resourceVersion").str();
	if (!uid.empty() && uid != pod.uid)
		return failed("UID", uid, pod.uid);
	if (!rv.empty() && rv != std::to_string(pod.rv))
		return failed("ResourceVersion", rv, std::to_string(pod.rv));
	return {};
}

static Refusal check_bindable(const Object &pod, const J &json)
{
	auto refuse = [&](const std::string &why) { return conflict("", "pods/binding", pod.name, why); };
	if (json.path("metadata.deletionTimestamp"))
		return refuse("pod " + pod.name + " is being deleted, cannot be assigned to a host");
	if (std::string node = json.path("spec.nodeName").str(); !node.empty())
		return refuse("pod " + pod.name + " is already assigned to node \"" + node + "\"");
	if (json.path("spec.schedulingGates").size())
		return refuse("pod " + pod.name + " has non-empty .spec.schedulingGates");
	return {};
}

Reply Api::bind(Request &r)
{
	if (r.content_type.find("protobuf") != std::string::npos)
		return Reply::refuse(unsupported_media_type());
	std::string problem;
	const J binding = J::parse(r.body, &problem);
	if (!binding.is_object())
		return Reply::refuse(bad_request("couldn't get version/kind; json parse error: " + problem));
	if (J kind = binding["kind"]; kind && kind.str() != "Binding")
		return Reply::refuse(bad_request(kind.str() + " in version \"v1\" cannot be handled as a Binding: "
							      "converting (v1." +
						 kind.str() + ") to (core.Binding): unknown conversion"));
	if (auto f = check_namespace(r, r.name))
		return Reply::refuse(*f);
	if (binding.path("metadata.name").str() != r.name)
		return Reply::refuse(bad_request("name in URL does not match name in Binding object"));
	const J target = binding["target"];
	std::string wrong;
	if (std::string kind = target["kind"].str(); !kind.empty() && kind != "Node")
		wrong = "target.kind: Unsupported value: \"" + kind + "\": supported values: \"Node\", \"<empty>\"";
	if (target["name"].str().empty())
		wrong = wrong.empty() ? "target.name: Required value"
				      : "[" + wrong + ", target.name: Required value]";
	if (!wrong.empty())
		return Reply::refuse({500, "", wrong, {}});

	ObjectPtr pod = store_.find(r.kind->storage, r.ns, r.name);
	if (!pod)
		return Reply::refuse(not_found(*r.kind, r.name));
	r.object_uid = pod->uid;
	J json = pod->json();
	if (auto f = check_precondition(*pod, binding))
		return Reply::refuse(*f);
	if (auto f = check_bindable(*pod, json))
		return Reply::refuse(*f);
	json["spec"].set("nodeName", target["name"]);
	for (const char *field : {"annotations", "labels"})
		if (J more = binding["metadata"][field]; more.size()) {
			J merged = json["metadata"].child(field);
			more.each_member([&](const std::string &k, const J &v) { merged.set(k, v); });
		}
	J status = json.child("status");
	status.del("nominatedNodeName");
	set_condition(status, "PodScheduled", "True");
	if (!r.flag("dryRun"))
		store_.put(r.kind->storage, json);
	return Reply::json(201, J::make("kind", "Status", "apiVersion", "v1", "metadata", J::object(), "status",
					"Success", "code", 201)
					.dump());
}

} // namespace kubesim
