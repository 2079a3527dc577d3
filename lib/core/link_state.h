// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What an administrator is told of the way to a cluster: one line when it is lost, one
// when it is back, one for each right that is missing and when it is given. Engine
// thread only.
#ifndef SK8_CORE_LINK_STATE_H
#define SK8_CORE_LINK_STATE_H

#include <map>
#include <set>
#include <string>
#include <utility>

#include "lib/core/kube_port.h"
#include "lib/core/timer_port.h"
#include "lib/kube/client.h"

namespace sk8::core {

class LinkState {
public:
	// timer must outlive this, and run nothing of it after its end.
	LinkState(std::string cluster, TimerPort &timer) : cluster_(std::move(cluster)), timer_(timer) {}

	// Of what ("pods", "nodes") there is no news any more; why: one sentence.
	void lost(const std::string &what, const std::string &why);
	// There is, and nothing was missed. True if requests failed meanwhile: all that waits need not any more. A watch that has only expired was
	// ended by a server that is there.
	bool back(const std::string &what);
	// status: HTTP; 0: no answer. news: of a list or a watch, whose only refusal without a reason to wait is 410. It may come before lost().
	void answered(int status, bool news) { away_ |= status == 0 || status == 401 || status >= 500 || (news && status >= 300 && status != 410); }
	void called(const kube::CallOutcome &outcome);

	bool connected() const { return lost_.empty(); }
	Millis since() const { return since_; }                       // monotonic, of connected()
	const std::string &last_trouble() const { return trouble_; } // empty: there was none
	// Verbs and resources that were told and not allowed since: "create pods/binding".
	std::set<std::string> missing_rights() const;

private:
	using Right = std::pair<std::string, std::string>; // verb, resource

	struct Denial {
		std::set<std::string> namespaces;
		Millis since{0}; // its first refusal
		bool told = false;
	};

	void tell_lost();
	void denied(const Right &right, const kube::CallOutcome &outcome);

	const std::string cluster_;
	TimerPort &timer_;
	std::set<std::string> lost_;
	std::string trouble_;
	Millis since_{0}, told_at_{0};
	bool away_ = false; // since all was known, see back()
	bool told_ = false, ever_told_ = false, tell_planned_ = false;
	int untold_ = 0; // outages that were over before they were told
	std::map<Right, Denial> denied_;
};

} // namespace sk8::core

#endif
