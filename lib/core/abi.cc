// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The C border: every function converts, calls, and lets no exception out.
#include "lib/sk8_abi.h"

#include <deque>
#include <atomic>
#include <mutex>

#include "lib/base/guard.h"
#include "lib/core/metrics.h"
#include "lib/core/runtime.h"

namespace sk8::core {
namespace {

std::mutex mutex; // guards users and the creation of the runtime
int users = 0;
std::atomic<Runtime *> runtime{nullptr}; // leaked on purpose

void (*host_log)(sk8_log_level, const char *) = nullptr;
sk8_log_level (*host_log_level)() = nullptr;

void log_to_host(LogLevel level, const char *text)
{
	host_log(static_cast<sk8_log_level>(level), text);
}

LogLevel level_of_host()
{
	return static_cast<LogLevel>(host_log_level());
}

Runtime *get()
{
	return runtime.load(std::memory_order_acquire);
}

// A snapshot in C's shape. The cache and each sk8_masks_get() own a share.
struct Masks {
	sk8_masks abi; // first: what C holds is a pointer to it
	std::atomic<int> shares;
	std::shared_ptr<const MaskSnapshot> snapshot;
	std::vector<sk8_mask> masks;
	std::deque<sk8_mask> exclusive; // what some of these point to
};
std::mutex masks_mutex;
Masks *cached = nullptr;

void drop(Masks *m)
{
	if (m && m->shares.fetch_sub(1, std::memory_order_acq_rel) == 1)
		delete m;
}

sk8_mask mask_to_abi(const NodeMask &n)
{
	return {n.node.c_str(), static_cast<std::uint32_t>(n.cores.size()), n.cores.data(),
		n.more_cores, static_cast<std::uint64_t>(n.milli_cpu), n.memory_mb, n.whole,
		static_cast<std::uint64_t>(n.overhead_milli_cpu), n.overhead_mb,
		static_cast<std::uint64_t>(n.allocatable.milli_cpu), n.allocatable.memory_mb,
		n.full.for_pods, n.full.for_jobs, n.full.shared_cpus,
		n.version, static_cast<std::uint32_t>(n.gres_abi.size()), n.gres_abi.data(), nullptr,
		static_cast<std::uint32_t>(n.jobs.size()), n.jobs.data(), n.some_jobs};
}

Masks *make_masks(std::shared_ptr<const MaskSnapshot> snapshot)
{
	auto m = std::make_unique<Masks>();
	for (const auto &n : snapshot->masks) {
		m->masks.push_back(mask_to_abi(*n));
		if (n->exclusive)
			m->masks.back().exclusive = &m->exclusive.emplace_back(mask_to_abi(*n->exclusive));
	}
	m->abi = {snapshot->generation, m->masks.size(), m->masks.data()};
	m->shares = 1;
	m->snapshot = std::move(snapshot);
	return m.release();
}

const sk8_masks *get_masks(Runtime &r)
{
	auto snapshot = r.holds().masks();
	if (!snapshot)
		return nullptr;
	std::lock_guard lock(masks_mutex);
	if (!cached || cached->snapshot != snapshot) {
		Masks *fresh = make_masks(std::move(snapshot));
		drop(std::exchange(cached, fresh));
	}
	cached->shares.fetch_add(1, std::memory_order_relaxed);
	return &cached->abi;
}

// Runs f(runtime) behind the barrier, if there is a runtime.
template <class F>
void with_runtime(const char *where, Hook hook, F f)
{
	if (Runtime *r = get()) {
		const HookTimer timer(hook);
		guard(where, [&] { f(*r); });
	}
}

} // namespace
} // namespace sk8::core

using namespace sk8;
using namespace sk8::core;

extern "C" {

const char SK8_BORDER[] = SK8_STAMP;

int sk8_runtime_acquire(const sk8_host *host)
{
	return guard("sk8_runtime_acquire", -1, [&] {
		std::lock_guard lock(mutex);
		if (!get()) {
			host_log = host->log;
			host_log_level = host->log_level;
			set_log_sink(log_to_host, level_of_host);
			runtime.store(new Runtime(*host), std::memory_order_release);
		}
		users++;
		return 0;
	});
}

void sk8_runtime_release(void)
{
	std::lock_guard lock(mutex);
	if (users > 0 && --users == 0)
		with_runtime("sk8_runtime_release", Hook::shutdown, [](Runtime &r) { r.shutdown(); });
}

void sk8_on_node_init(bool goes_on)
{
	with_runtime("sk8_on_node_init", Hook::node_init, [&](Runtime &r) { r.node_init(goes_on); });
}

void sk8_on_reconfigure(void)
{
	with_runtime("sk8_on_reconfigure", Hook::reconfigure, [](Runtime &r) { r.reconfigure(); });
}

void sk8_on_shutdown(void)
{
	with_runtime("sk8_on_shutdown", Hook::shutdown, [](Runtime &r) { r.shutdown(); });
}

void sk8_on_job_start(const sk8_job *job)
{
	with_runtime("sk8_on_job_start", Hook::job_start, [&](Runtime &r) { r.job_start(*job); });
}

void sk8_on_job_fini(const sk8_job *job)
{
	with_runtime("sk8_on_job_fini", Hook::job_fini, [&](Runtime &r) { r.job_fini(*job); });
}

bool sk8_on_gate(const sk8_native_job *job)
{
	Runtime *r = get();
	return r && guard("sk8_on_gate", false, [&] { return r->gate(*job); });
}

void sk8_on_native_fini(uint32_t job_id, int64_t submit_time)
{
	if (Runtime *r = get())
		guard("sk8_on_native_fini", [&] { r->native_fini({job_id, submit_time}); });
}

void sk8_on_native_resized(uint32_t job_id, int64_t submit_time)
{
	if (Runtime *r = get())
		guard("sk8_on_native_resized", [&] { r->native_resized({job_id, submit_time}); });
}

const sk8_masks *sk8_masks_get(void)
{
	Runtime *r = get();
	const sk8_masks *none = nullptr;
	if (!r)
		return none;
	const HookTimer timer(Hook::masks);
	return guard("sk8_masks_get", none, [&] { return get_masks(*r); });
}

void sk8_masks_put(const sk8_masks *m)
{
	drop(reinterpret_cast<Masks *>(const_cast<sk8_masks *>(m)));
}

bool sk8_submitting(void)
{
	return submitting_now();
}

bool sk8_is_mark(const char *admin_comment)
{
	return admin_comment && std::string_view(admin_comment).starts_with(SK8_MARK_PREFIX);
}

bool sk8_completes_tokens(const char *partition)
{
	Runtime *r = get();
	return r && guard("sk8_completes_tokens", false, [&] { return r->completes_tokens(partition); });
}

} // extern "C"
