// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// reservations.shared: on each node the small jobs of Slurm's own share one reservation pod. It
// requests what all of them have there, and is resized in place when one comes or goes.
//
//   waits   in the gate. It is let out when the kubelet has set aside what all that run and
//           those before it have; if it does not, the later half of those that wait are refused,
//           and what was asked for them is taken back
//   runs    always requested
//   ends    requested until its last process is gone
//
// What the pod holds beyond those that wait and run is masked as any foreign pod. It goes when
// nobody has used it for a while.
//
// Engine thread only. All I/O goes through the ports.
#ifndef SK8_CORE_SHARED_RESERVATIONS_H
#define SK8_CORE_SHARED_RESERVATIONS_H

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/core/reservation.h"
#include "lib/core/reservation_port.h"
#include "lib/core/shared_reservation.h"
#include "lib/core/timer_port.h"

namespace sk8::core {

struct SharedReservationPorts {
	ReservationPort &kube;
	TimerPort &timer;
	std::function<void(const std::string &uid)> cover_changed; // covered() of that pod is another now
	// state() of the node's jobs is another now. Gone: the pod is.
	std::function<void(const std::string &node, Gone)> news;
	// Slurm has that node: the pods of others are another Slurm's, which has the same namespace.
	std::function<bool(const std::string &node)> in_slurm;
	std::function<bool(const std::string &node)> in_kubernetes; // which collects pods of nodes that it does not have
};

class SharedReservations {
public:
	using Id = std::pair<std::uint32_t, std::int64_t>; // of a job
	enum class Use { waits, runs, ends };

	SharedReservations(const ClusterSettings &settings, SharedReservationPorts ports);

	// Pods, nodes and jobs are known: only then anything is done or said.
	void set_ready(bool ready) { ready_ = ready; }
	bool takes(const NativeShare &share) const;
	bool has_pod(const std::string &node) const; // one of which more jobs may have a part

	// ---- Slurm ----
	// perhaps_runs: it waits, and may have been launched before; what it has stays requested.
	void set(Id job, const NativeShare &share, Use use, bool perhaps_runs = false);
	void leave(Id job, const std::string &node);
	std::vector<Id> jobs(const std::string &node) const;
	// As of a pod of its own. over: it is refused, or was evicted.
	ReservationState state(Id job, const std::string &node) const;
	// It waits, and is to have a pod of its own: this one cannot grow.
	bool needs_own(Id job, const std::string &node) const;

	// ---- Kubernetes; false: it is none of these ----
	void replaced(const std::set<std::string> &listed); // uids of all pods there are
	bool changed(const ForeignPodPtr &pod);
	bool removed(const ForeignPodPtr &last);

	void sync(const std::string &node);
	void sync_all();
	Cover covered(const std::string &uid) const;

private:
	struct Member {
		NativeShare share;
		Use use = Use::waits;
		std::uint64_t arrival = 0;
		bool asked = false;        // the pod was asked to hold it, too
		bool admitted = false;     // in what the kubelet has set aside
		bool was_admitted = false; // at some time, by the pod that is there
		bool refused = false;      // not requested for now, ...
		bool perhaps_runs = false; // ... but this one
		bool requested() const { return !refused || perhaps_runs; }
		int refusals = 0;
		std::string trouble;
	};
	// What we have asked of the object, and may yet come to that.
	struct Requests {
		bool resizing = false;      // no answer yet
		bool removing = false;      // a DELETE of ours was sent, ...
		Millis delete_until{0};     // ... and arrives then at the latest, if it was not answered
		std::string resize_version; // of the object that a resize without an answer changes
	};
	// The state is that of the object; was_admitted is each member's.
	struct Node : ReservationState {
		std::map<Id, Member> members;
		bool busy = false; // an answer is awaited
		bool creating = false; // ... to that request
		Requests sent;
		bool former = false; // it was there before us
		bool resizes = true; // in place
		std::string version, jobs; // of the object, as the next ones
		bool relisted = false;     // all pods are listed anew, and it has not been told since
		kube::Resize resize;
		Amount asked, held; // held: what Kubernetes counts for it
		Amount covered;

		int failures = 0;
		Millis retry_at{0}, empty_since{0}, asked_at{0}, listed_at{0}, wakes_at{0};
		std::string refused_version; // of the object that was read too early (409)
	};

	static Amount sum(const Node &n, bool (*counts)(const Member &));
	static Amount wanted(const Node &n);
	std::string job_ids(const Node &n) const;
	PodKey key_of(const std::string &node, const Node &n) const;
	bool see(const std::string &node, Node &n, const ForeignPod &pod);
	void judge(const std::string &node, Node &n);
	void refuse(const std::string &node, Node &n, const std::string &why);
	void cannot_resize(const std::string &node, Node &n, const std::string &why);
	void lose(const std::string &node, Gone gone);
	void count(Node &n);
	bool settled(const Node &n) const;
	static bool may_be_resized_yet(const Node &n);
	SharedFacts facts(const std::string &node, const Node &n) const;
	void create(const std::string &node, Node &n);
	void resize(const std::string &node, Node &n);
	void resized(const std::string &node, const std::string &version, const KubeReply &r, ReservationPort::Resizes can,
		     const ForeignPodPtr &pod);
	void annotate(const std::string &node, Node &n);
	void remove(const std::string &node, Node &n);
	void failed(const std::string &node, Node &n, const std::string &why);
	void again(const std::string &node, Millis delay);

	const ClusterSettings settings_;
	SharedReservationPorts ports_;
	std::map<std::string, Node> nodes_;
	std::map<std::string, std::string> node_of_; // by uid
	std::uint64_t arrivals_ = 0;
	bool ready_ = false, resizes_ = true; // resizes_: the API server does
	bool listed_ = false;
	Millis begun_{0}; // when pods were listed first
};

} // namespace sk8::core

#endif
