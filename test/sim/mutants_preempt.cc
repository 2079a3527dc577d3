// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Mistakes about jobs that Slurm preempts.
#include "test/sim/mutants.h"

namespace sk8::sim {

namespace {

const sk8_slurm_ops *stock;
Mutant mistake;
void (*each)(void *, const sk8_job *);
void *each_arg;

void spoil(sk8_job &job)
{
	if (job.preempt_end == SK8_NO_TIME)
		return;
	job.preempt_end = mistake == Mutant::grace_unseen ? SK8_NO_TIME : 1; // long ago: nothing is left of it
}

bool spoilt_find(std::uint32_t id, sk8_job *job)
{
	const bool found = stock->find(id, job);
	if (found)
		spoil(*job);
	return found;
}

void spoilt_each(void (*f)(void *, const sk8_job *), void *arg)
{
	each = f;
	each_arg = arg;
	stock->each_job([](void *, const sk8_job *j) {
		sk8_job job = *j;
		spoil(job);
		each(each_arg, &job);
	}, nullptr);
}

} // namespace

void mutate_preemption(Mutant m, const sk8_slurm_ops &inner, sk8_slurm_ops &table)
{
	stock = &inner;
	mistake = m;
	if (m == Mutant::grace_unseen || m == Mutant::grace_not_given) {
		table.find = spoilt_find;
		table.each_job = spoilt_each;
	}
	if (m == Mutant::not_spared)
		table.spare = [](std::uint32_t, std::int64_t, const char *, sk8_outcome *out) { *out = {}; };
}

} // namespace sk8::sim
