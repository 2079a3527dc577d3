// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// KubePort on a kube::Client: the requests and nothing else.
#ifndef SK8_CORE_KUBE_LINK_H
#define SK8_CORE_KUBE_LINK_H

#include "lib/core/kube_port.h"
#include "lib/kube/client.h"

namespace sk8::core {

// An answer as the engine reads it, but for its object.
KubeReply kube_reply(const kube::Reply &r);
// As a merge patch wants them.
Json annotations_patch(const AnnotationChanges &changes);

class KubeLink final : public KubePort {
public:
	explicit KubeLink(kube::Client &client) : client_(client) {}

	void get_pod(const PodKey &key, Done done) override;
	void set_finalizer(const PodKey &key, bool present, Done done) override;
	void bind(const PodKey &key, const std::string &node,
		  const std::map<std::string, std::string> &annotations, Done done) override;
	void annotate_pod(const PodKey &key, const AnnotationChanges &changes, Done done) override;
	void delete_pod(const PodKey &key, const Deletion &how, Done done) override;
	void set_condition(const PodKey &key, const std::string &resource_version,
			   const PodCondition &condition, Done done) override;
	void get_manifest(const PodKey &key, Manifest done) override;
	void create_pod(const std::string &ns, const Json &object, Done done) override;
	void create_event(const PodKey &key, const PodEvent &event, Done done) override;
	void patch_claim(const kube::ResourceClaim &claim, bool status, const Json &patch, Done done) override;
	void get_volumes(const PodKey &key, const std::vector<std::string> &claims,
			 std::function<void(const Volumes &)> done) override;

private:
	struct VolumeWalk;
	void next_claim(std::shared_ptr<VolumeWalk> walk);
	void read_volume(std::shared_ptr<VolumeWalk> walk, const std::string &volume);
	void read_class(std::shared_ptr<VolumeWalk> walk, const std::string &claim, const std::string &name);

	kube::Client &client_;
};

} // namespace sk8::core

#endif
