// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The kubelets of all simulated nodes. They watch the store and act through the API
// as system:node:NAME, so that the audit log shows what a real kubelet's would.
#ifndef KUBESIM_KUBELET_H
#define KUBESIM_KUBELET_H

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "test/kubesim/api.h"
#include "test/kubesim/audit.h"
#include "test/kubesim/container.h"
#include "test/kubesim/loop.h"
#include "test/kubesim/options.h"

namespace kubesim {

class Kubelet {
public:
	Kubelet(Loop &loop, Api &api, Audit &audit, const Options &options);
	~Kubelet();
	std::string start(); // makes the nodes, takes up their pods; an error sentence, or ""

private:
	struct Node {
		std::string name;
		bool fake = false;
		std::map<std::string, std::int64_t> allocatable; // cpu in milli
		std::set<std::string> pods;                      // uids of those that may still run
	};

	struct Run { // one container of a pod
		J spec;
		std::string id; // empty: not started yet
		std::unique_ptr<Container> container;
		std::optional<ContainerEnd> end; // of the last start
		std::int64_t started_us = 0;
		int restarts = 0;
		J last_state; // terminated state before the last restart
		std::optional<Loop::Timer> backoff;
		bool running() const { return container && !end; }
	};

	struct Pod { // one pod on one of our nodes
		Node *node = nullptr;
		std::string ns, name, uid;
		J object; // last seen
		std::map<std::string, std::int64_t> requests; // what is set aside for it
		std::int64_t seen = 0;                        // metadata.generation of the spec that was looked at
		std::string put_off, put_off_why;             // Deferred or Infeasible: what that one asks for
		std::int64_t start_time = 0; // status.startTime, seconds
		std::vector<Run> runs;
		bool vanished = false;  // no longer in the API
		bool killing = false;
		bool finished = false;  // no container runs or will run
		bool deleted = false;   // the final delete was sent
		std::int64_t grace = 0; // of the kill under way, seconds
		std::string fail_reason, fail_message;
		std::optional<Loop::Timer> kill_timer, deadline_timer;
	};

	// kubelet.cc: nodes and what is on them
	std::string make_node(const std::string &name, bool fake);
	void changed(const Object &pod);
	void sync(const std::string &uid);
	Pod described(const Object &object, const J &json);
	void take(const ObjectPtr &object);
	void adopt(const ObjectPtr &object);
	bool admit(Pod &pod);
	void reject(Pod &pod, const std::string &reason, const std::string &message);
	void synced();
	void heartbeat();
	Reply logs(const Object &pod, const Request &r);
	void find_left_containers();

	// kubelet_resize.cc: requests that change in place
	void resize(Pod &pod);
	void retry_resizes(Node &node);
	void restore_allocated(Pod &pod, const J &json);
	std::string lacking(const Pod &pod, const std::map<std::string, std::int64_t> &requests, std::string *what) const;

	// kubelet_pod.cc: the life of one pod
	void start_pod(Pod &pod);
	void start_run(Pod &pod, Run &run);
	void follow(Pod &pod, Run &run);
	void ended(const std::string &uid, const std::string &container, const ContainerEnd &end);
	void restart_later(Pod &pod, Run &run);
	void watch_deadline(Pod &pod);
	void begin_kill(Pod &pod, std::int64_t grace);
	void settle(Pod &pod);
	void finish(Pod &pod);
	ProcessSpec process_spec(const Pod &pod, const Run &run) const;
	void log_run(const Pod &pod, const Run &run, const char *event, std::int64_t us);

	// kubelet_status.cc
	J status_of(const Pod &pod) const;
	void write_status(Pod &pod);
	void write_event(const Pod &pod, const char *type, const std::string &reason, const std::string &message);
	Reply call(const Node &node, const char *method, const std::string &path, const J &body,
		   const char *content_type = "application/json");

	Loop &loop_;
	Api &api_;
	Audit &audit_;
	const Options &options_;
	int log_fd_ = -1;
	// It has looked once at what runs. Before that a kubelet gives no pod a final phase that it may have started before (podsSynced in
	// pod_workers.go, mergePodStatus() in status_manager.go).
	bool synced_ = false;
	std::map<std::string, Node> nodes_;
	std::map<std::string, Pod> pods_; // by uid
	std::set<std::string> due_;       // uids that wait for sync
	std::map<std::string, std::vector<std::string>> left_; // uid -> folders of an earlier kubesim
};

} // namespace kubesim

#endif
