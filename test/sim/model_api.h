// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The Kubernetes API server, as far as pods and nodes go: what it stores, what it
// refuses, and the history that watches are served from. Requests take effect at
// once here; on their way they are late, lost or repeated in kube_requests and watch.
#ifndef SK8_SIM_MODEL_API_H
#define SK8_SIM_MODEL_API_H

#include <functional>
#include <map>
#include <set>
#include <memory>
#include <string>
#include <vector>

#include "lib/kube/objects.h"
#include "test/sim/story.h"

namespace sk8::sim {

inline constexpr std::int64_t epoch = 1'000'000; // wall seconds at the virtual time 0

struct ApiEvent {
	std::int64_t version = 0;
	bool removed = false;
	kube::PodPtr pod; // removed: its last state
};

struct NodeEvent {
	kube::NodePtr node; // removed: its last state
	bool removed = false;
};

// What the API server tells those who look on (kubelets, watches, the judge).
class ApiListener {
public:
	virtual ~ApiListener() = default;
	virtual void pod_event(const ApiEvent &event) = 0;
	virtual void node_event(const NodeEvent &) {}
	virtual void bound(const kube::Pod &) {}
	virtual void restored() {} // from a backup: history is another now
};

class ModelApi {
public:
	ModelApi(Schedule &time, Story &story) : time_(time), story_(story) {}
	void listen(ApiListener *listener) { listeners_.push_back(listener); }

	// ---- state of the server: those who ask look at it ----
	bool down = false;  // refuses connections
	bool hung = false;  // accepts, and answers when this is false again
	bool forbids = false; // 403 to the engine's writes

	// ---- what it stores ----
	kube::PodPtr pod(const std::string &name) const;
	const std::map<std::string, kube::PodPtr> &pods() const { return pods_; }
	// Of one that is deleted its last state: its machine is what it was.
	const std::map<std::string, kube::NodePtr> &nodes() const { return nodes_; }
	bool has_node(const std::string &name) const { return nodes_.contains(name) && !deleted_nodes_.contains(name); }
	std::int64_t version() const { return version_; }
	// Events after that version, oldest first; false: too old or of another history, 410.
	bool since(std::int64_t version, std::vector<ApiEvent> &out) const;

	// ---- requests; they return the HTTP status ----
	int create(kube::Pod pod);
	// For create(): what the pod of this uid, which was ever there, was when it was new, with a uid
	// of its own; it says whose place it takes.
	kube::Pod new_pod_like(const std::string &uid);
	// ... that nobody had before.
	std::string new_uid() { return "made" + std::to_string(++made_); }
	int patch_finalizer(const std::string &name, const std::string &uid, const std::string &finalizer, bool present);
	int bind(const std::string &name, const std::string &uid, const std::string &node,
		 const std::map<std::string, std::string> &annotations);
	// grace < 0: the pod's own. uid empty: any.
	int remove(const std::string &name, const std::string &uid, std::int64_t grace);
	int set_condition(const std::string &name, const std::string &version, const std::string &reason,
			  const std::string &message);
	// Any other change of a pod of that uid; false: there is none.
	bool change(const std::string &name, const std::string &uid, const std::function<void(kube::Pod &)> &edit);
	void set_node(kube::Node node); // nothing, if it is deleted
	void remove_node(const std::string &name);
	void register_node(const std::string &name); // its kubelet's, after remove_node(): another object
	// All that was ever set or removed, oldest first: a watch of nodes goes on from where it was.
	const std::vector<NodeEvent> &node_history() const { return node_history_; }

	void compact() { history_.clear(); oldest_ = version_; } // watches from before get 410
	void backup();
	kube::PodPtr saved_pod(const std::string &name) const; // in the backup
	void restore(); // etcd is what it was at the backup
	int restores() const { return restores_; }

private:
	void store(kube::Pod pod);
	void drop(const kube::Pod &last);
	// Stores it, or removes it if nothing keeps a deleted pod any more.
	void store_or_drop(kube::Pod pod);
	void publish(ApiEvent event);
	void publish(NodeEvent event);
	std::int64_t wall() const { return epoch + time_.now() / second; }

	Schedule &time_;
	Story &story_;
	std::vector<ApiListener *> listeners_;
	std::map<std::string, kube::PodPtr> pods_; // by name: one namespace
	std::map<std::string, kube::NodePtr> nodes_;
	std::set<std::string> deleted_nodes_;
	std::vector<NodeEvent> node_history_;
	std::vector<ApiEvent> history_;
	std::int64_t version_ = 100, oldest_ = 100;
	std::map<std::string, kube::PodPtr> saved_pods_;
	std::int64_t saved_version_ = 0;
	int restores_ = 0;
	std::map<std::string, kube::Pod> new_pods_; // by uid
	int again_ = 0, made_ = 0;
};

} // namespace sk8::sim

#endif
