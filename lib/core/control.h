// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What slurm-k8s(1) may ask of the engines: status, gres, release, debug. On the control
// server's thread; what an engine knows or does is asked of it by posting, and is
// answered without it when it does not answer in time.
//
//   {"command":"status", "node":N, "pod":P}       all but the command may be absent
//   {"command":"gres", "node":N}                  which GRES nodes should have
//   {"command":"release", "pod":P, "node":N, "force":true}
//   {"command":"debug", "level":L}                off, verbose, debug; absent: only ask
// P: NAMESPACE/NAME or a uid. Answers: {"ok":true, ...} or {"ok":false, "error":TEXT}.
#ifndef SK8_CORE_CONTROL_H
#define SK8_CORE_CONTROL_H

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/core/cluster_engine.h"
#include "lib/core/control_server.h"
#include "lib/core/hold_table.h"
#include "lib/core/slurm_worker.h"
#include "lib/sk8_abi.h"

namespace sk8::core {

// The runtime at one moment.
struct RuntimeState {
	bool parked = true;
	std::vector<std::shared_ptr<ClusterEngine>> engines;
	std::shared_ptr<SlurmWorker> worker;
	std::int64_t started_at = 0;   // since when it is in charge, seconds since 1970
	std::int64_t config_read_at = 0; // ... that the configuration was last read
	std::string config_error;      // of that time, lines; empty: it is in force
	std::map<std::string, std::string> not_started = {}; // clusters whose engine cannot be started, and why
};

class Control {
public:
	// host, holds: live for ever. look: any thread, takes only a short lock.
	Control(const sk8_host &host, HoldTable &holds, std::function<RuntimeState()> look);

	std::shared_ptr<Inquiry> handle(const ControlRequest &request);

private:
	std::shared_ptr<Inquiry> status(const ControlRequest &request);
	std::shared_ptr<Inquiry> gres(const ControlRequest &request);
	std::shared_ptr<Inquiry> release(const ControlRequest &request);
	std::shared_ptr<Inquiry> debug(const ControlRequest &request);
	Json overview(const RuntimeState &state) const;

	const sk8_host host_;
	HoldTable &holds_;
	const std::function<RuntimeState()> look_;
};

} // namespace sk8::core

#endif
