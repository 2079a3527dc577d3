// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The runtime's part for jobs of Slurm's own, from hooks to engines and back.
#include "lib/core/runtime.h"

namespace sk8::core {

std::vector<std::shared_ptr<ClusterEngine>> Runtime::engines_with_reservations()
{
	std::lock_guard lock(mutex_);
	std::vector<std::shared_ptr<ClusterEngine>> out;
	for (const auto &[name, engine] : engines_)
		if (engine->wants_natives())
			out.push_back(engine);
	return out;
}

// Also while slurmctld ends: it saves that the job waits, and calls again after its start.
bool Runtime::gate(const sk8_native_job &abi)
{
	if (!gate_.arrive(native_from_abi(abi)))
		return false;
	for (const auto &engine : engines_with_reservations())
		engine->gate_changed();
	return true;
}

void Runtime::native_fini(JobRef job)
{
	if (!gate_.used())
		return;
	gate_.ended(job);
	for (const auto &engine : engines_with_reservations())
		engine->native_ended(job);
}

// From now on the Slurm thread looks where it is.
void Runtime::native_resized(JobRef job)
{
	if (!gate_.used())
		return;
	std::lock_guard lock(mutex_);
	if (worker_)
		worker_->watch_end(job);
}

// Any thread.
void Runtime::answer_gate(JobRef job, const GateAnswer &answer)
{
	std::lock_guard lock(mutex_);
	if (worker_)
		tell_slurm(*worker_, job, answer);
}

// A worker that is stopped before it has told leaves it to the next one.
void Runtime::tell_slurm(SlurmWorker &worker, JobRef job, const GateAnswer &answer)
{
	worker.answer_gate(job, answer, [this, job] { return gate_.told(job); });
}

} // namespace sk8::core
