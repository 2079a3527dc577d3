// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Makes bare pods again that lost their node (resubmit.h).
//
//   wanted   before the DELETE that we send because of its job; nobody else had asked for one
//   kept     when its last process is gone, before our finalizer comes off: the manifest is in
//            the saved ledger, on disk
//   made     the new pod is there; until its job runs it finds its age here
//
// The name is what keeps it from being made twice: the API server has one pod of a name, and
// the new one says whose place it takes. So a slurmctld that dies at any step goes on there.
//
// Engine thread only; the ledger is flushed by PodsController at the end of each turn.
#ifndef SK8_CORE_RESUBMITS_H
#define SK8_CORE_RESUBMITS_H

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/core/hold_journal.h"
#include "lib/core/hold_table.h"
#include "lib/core/kube_port.h"
#include "lib/core/pod_reports.h"
#include "lib/core/resubmit.h"
#include "lib/core/timer_port.h"

namespace sk8::core {

struct ResubmitPorts {
	KubePort &kube;
	TimerPort &timer;
	HoldTable &holds;
	HoldJournal &journal;
	PodReports &reports;
};

class Resubmits {
public:
	// known: of the saved ledger.
	// made: told of each new pod that no watch has told of yet.
	Resubmits(const std::vector<Resubmit> &known, ResubmitPorts ports, std::function<void(const kube::PodPtr &)> made);

	// Pods are known: what was left by a former slurmctld goes on. known: is there anything of
	// the pod of this uid? made: is there a pod that takes its place?
	void start(const std::function<bool(const std::string &uid)> &known,
		   const std::function<bool(const std::string &uid)> &made);

	// Our DELETE is about to be sent. Again changes nothing but the age.
	void want(const PodKey &key, const Age &age);
	// It has an answer: ours is what deletes the pod.
	void arrived(const std::string &uid);
	// nullptr: it is not to be made again.
	const Resubmit *find(const std::string &uid) const;
	// Error: too much is kept already, for now.
	Result<void> keep(const std::string &uid, std::string manifest);
	// It is not made again. why: for its owner, empty if nobody expects it.
	void drop(const std::string &uid, const std::string &why);
	// Its object is gone: what is kept is made.
	void gone(const std::string &uid);

	// This pod is there: no other one is made.
	void seen(const PodKey &pod, const std::string &from);
	// Of the job in whose place this pod's job is made. from: see resubmitted_from().
	Age age_for(const PodKey &pod, const std::string &from) const;
	// This pod needs that no more: its job runs, or it is gone.
	void settled(const PodKey &pod, const std::string &from);

private:
	struct Row {
		Resubmit what;
		bool busy = false; // a request is on its way, or waits for its next try
		int failures = 0;
	};
	using Rows = std::unordered_map<std::string, Row>; // by the uid of the pod that goes

	void save(const Row &row);
	void forget(const std::string &uid);
	const Row *row_of(const PodKey &pod, const std::string &from) const;
	void create(const std::string &uid);
	void created(Row &row, const KubeReply &r);
	void look(Row &row);
	void looked(Row &row, const KubeReply &r);
	void made(Row &row, const PodKey &pod);
	void later(Row &row, const KubeReply &r);
	KubePort::Done answer(const Row &row, void (Resubmits::*f)(Row &, const KubeReply &));

	ResubmitPorts ports_;
	std::function<void(const kube::PodPtr &)> told_made_;
	Rows rows_;
	std::size_t bytes_ = 0; // of the manifests
};

} // namespace sk8::core

#endif
