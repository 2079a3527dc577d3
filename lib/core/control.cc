// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/control.h"

#include <mutex>
#include <optional>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/recent.h"
#include "lib/base/text.h"
#include "lib/core/identity.h"
#include "lib/core/ledger_file.h"
#include "lib/core/pod_log.h"
#include "sk8_config.h"

namespace sk8::core {

static constexpr std::size_t max_masks = 1000; // nodes in one answer

static constexpr std::pair<std::string_view, LogLevel> levels[] = {
	{"verbose", LogLevel::verbose}, {"debug", LogLevel::debug}};

static std::string_view level_name(std::optional<LogLevel> level)
{
	for (const auto &[name, value] : levels)
		if (level == value)
			return name;
	return "off";
}

Control::Control(const sk8_host &host, HoldTable &holds, std::function<RuntimeState()> look)
	: host_(host), holds_(holds), look_(std::move(look))
{
}

std::shared_ptr<Inquiry> Control::handle(const ControlRequest &request)
{
	static constexpr std::pair<std::string_view, std::shared_ptr<Inquiry> (Control::*)(const ControlRequest &)>
		commands[] = {
			{"status", &Control::status}, {"gres", &Control::gres}, {"release", &Control::release}, {"debug", &Control::debug}};
	const Json command = request.body["command"];
	for (const auto &[name, f] : commands)
		if (command.str() == name)
			return (this->*f)(request);
	return answered(control_error("slurmctld's slurm-k8s " PACKAGE_VERSION " knows no command \"" +
				      one_line(command.str(), 32) + "\"; is slurm-k8s of the same version?"));
}

// ---- status ----

// The engines' answers, as they come.
class StatusInquiry final : public Inquiry {
public:
	StatusInquiry(Json overview, const RuntimeState &state, std::shared_ptr<const Wakeup> wakeup)
		: overview_(std::move(overview)), engines_(state.engines), not_started_(state.not_started), answers_(engines_.size()),
		  missing_(engines_.size()), wakeup_(std::move(wakeup))
	{
	}

	void put(std::size_t i, Json answer) // engine thread
	{
		{
			std::lock_guard lock(mutex_);
			answers_[i] = std::move(answer);
			missing_--;
		}
		wakeup_->notify();
	}

	bool complete() override
	{
		std::lock_guard lock(mutex_);
		return missing_ == 0;
	}

	Json reply() override
	{
		std::lock_guard lock(mutex_);
		Json clusters = Json::array();
		for (std::size_t i = 0; i < engines_.size(); i++)
			clusters.append(answers_[i] ? std::move(*answers_[i]) : hanging(*engines_[i]));
		for (const auto &[name, why] : not_started_)
			clusters.append(Json::object().set("name", name).set("state", "not started").set("error", why));
		return overview_.set("clusters", clusters);
	}

private:
	static Json hanging(const ClusterEngine &engine)
	{
		Json out = Json::object();
		out.set("name", engine.settings().name).set("state", "hanging");
		return out.set("busy_ms", Json::integer(engine.busy().count()));
	}

	Json overview_;
	const std::vector<std::shared_ptr<ClusterEngine>> engines_;
	const std::map<std::string, std::string> not_started_;
	std::mutex mutex_;
	std::vector<std::optional<Json>> answers_; // by engine
	std::size_t missing_;
	const std::shared_ptr<const Wakeup> wakeup_;
};

static Json configuration(const sk8_host &host, const RuntimeState &state)
{
	Json errors = Json::array();
	for (auto line : split(state.config_error, '\n'))
		errors.append(Json::string(line));
	Json out = Json::object();
	out.set("file", host.config_path).set("read_at", Json::integer(state.config_read_at));
	return out.set("errors", errors);
}

static Json troubles()
{
	Json out = Json::array();
	for (const Trouble &t : recent_trouble()) {
		Json row = Json::object();
		row.set("at", Json::integer(t.at)).set("times", Json::integer(static_cast<std::int64_t>(t.times)));
		row.set("level", t.level == LogLevel::error ? "error" : "warning").set("text", t.text);
		out.append(row);
	}
	return out;
}

Json Control::overview(const RuntimeState &state) const
{
	Json masks = Json::array();
	std::size_t nodes = 0;
	if (auto snapshot = holds_.masks()) {
		nodes = snapshot->masks.size();
		for (std::size_t i = 0; i < std::min(nodes, max_masks); i++)
			masks.append(to_json(*snapshot->masks[i]));
	}
	Json out = Json::object();
	out.set("ok", Json::boolean(true));
	out.set("version", PACKAGE_VERSION).set("slurm_version", host_.slurm_version);
	out.set("slurm_cluster", host_.slurm_cluster).set("pid", Json::integer(::getpid()));
	out.set("time", Json::integer(SystemClock().wall_seconds()));
	out.set("state", state.parked			? "parked"
			 : !state.engines.empty()	? "running"
			 : !state.config_error.empty() ? "bad configuration"
							: "starting");
	out.set("since", Json::integer(state.started_at));
	out.set("debug", level_name(log_override()));
	out.set("configuration", configuration(host_, state));
	out.set("masks", masks).set("masked_nodes", Json::integer(static_cast<std::int64_t>(nodes)));
	return out.set("troubles", troubles());
}

static void ask_engines(const std::shared_ptr<StatusInquiry> &inquiry, const std::vector<std::shared_ptr<ClusterEngine>> &engines,
			const std::function<Json(const ClusterEngine &)> &ask)
{
	for (std::size_t i = 0; i < engines.size(); i++)
		// Weak: it owns a share of the engine, and an engine that hangs never lets go of this.
		engines[i]->post([engine = engines[i].get(), weak = std::weak_ptr(inquiry), i, ask] {
			if (auto asked = weak.lock())
				asked->put(i, ask(*engine));
		});
}

std::shared_ptr<Inquiry> Control::status(const ControlRequest &request)
{
	const RuntimeState state = look_();
	StatusQuery query{std::string(request.body["node"].str()), std::string(request.body["pod"].str()), false};
	query.held = query.node.empty() && query.pod.empty();
	auto inquiry = std::make_shared<StatusInquiry>(overview(state), state, request.wakeup);
	ask_engines(inquiry, state.engines, [query](const ClusterEngine &engine) { return engine.status(query); });
	return inquiry;
}

// ---- gres ----

std::shared_ptr<Inquiry> Control::gres(const ControlRequest &request)
{
	const RuntimeState state = look_();
	auto inquiry = std::make_shared<StatusInquiry>(Json::object().set("ok", Json::boolean(true)), state, request.wakeup);
	ask_engines(inquiry, state.engines,
		    [node = std::string(request.body["node"].str())](const ClusterEngine &engine) { return engine.gres(node); });
	return inquiry;
}

// ---- release ----

// One piece of work for another thread. Once its asker has been told that nothing
// was done, nothing is done.
class ReleaseInquiry final : public Inquiry {
public:
	ReleaseInquiry(std::string who, std::shared_ptr<const Wakeup> wakeup)
		: who_(std::move(who)), wakeup_(std::move(wakeup))
	{
	}

	// The other thread.
	void run(const std::function<Result<std::string>()> &work)
	{
		{
			std::lock_guard lock(mutex_);
			if (given_up_)
				return;
			begun_ = true;
		}
		Result<std::string> done = work();
		{
			std::lock_guard lock(mutex_);
			done_ = std::move(done);
		}
		wakeup_->notify();
	}

	bool complete() override
	{
		std::lock_guard lock(mutex_);
		return done_.has_value();
	}

	Json reply() override
	{
		std::lock_guard lock(mutex_);
		given_up_ = !begun_;
		if (!begun_)
			return control_error(who_ + " does not answer; nothing was released");
		if (!done_)
			return control_error(who_ + " has begun and not finished; look with slurm-k8s status");
		if (!*done_)
			return control_error(done_->error().message);
		return Json::object().set("ok", Json::boolean(true)).set("text", **done_);
	}

private:
	const std::string who_;
	const std::shared_ptr<const Wakeup> wakeup_;
	std::mutex mutex_;
	bool begun_ = false, given_up_ = false;
	std::optional<Result<std::string>> done_;
};

// Of a cluster that is in no configuration any more: nobody else writes its ledger.
static Result<std::string> release_from_ledger(const sk8_host &host, HoldTable &holds, const Hold &hold,
					       const std::string &by)
{
	const std::string text = "what " + pod_text(hold.key, 0) + " holds on node " + hold.node;
	if (holds.release(hold.key) == HoldTable::Cover::none)
		return Error{text + " was free already"};
	holds.remember_release({hold.key, by}); // for an engine that starts later
	log_warning("%s is released by hand by %s; no engine runs for its cluster %s", text.c_str(), by.c_str(),
		    hold.key.cluster.c_str());
	LedgerFile ledger(ledger_path(host.state_dir, hold.key.cluster), holds.ledger(hold.key.cluster));
	if (auto r = ledger.flush(); !r)
		return Error{text + " is free until slurmctld starts again: " + r.error().message};
	return text + " is free";
}

static std::string several(const std::vector<Hold> &found)
{
	std::string text = "several pods are meant, name one by its uid:";
	for (std::size_t i = 0; i < std::min<std::size_t>(found.size(), 10); i++)
		text += (i ? ", " : " ") + found[i].key.uid + " on node " + found[i].node;
	return text;
}

std::shared_ptr<Inquiry> Control::release(const ControlRequest &request)
{
	const StatusQuery query{std::string(request.body["node"].str()), std::string(request.body["pod"].str()), false};
	const bool force = request.body["force"].boolean_or(false);
	if (query.pod.empty())
		return answered(control_error("which pod? NAMESPACE/NAME or a uid"));
	const std::vector<Hold> found = holds_.find([&](const Hold &h) {
		return query.wants_pod(h.key) && (query.node.empty() || query.node == h.node);
	});
	if (found.empty())
		return answered(control_error("no pod " + one_line(query.pod, 320) + " holds anything" +
					      (query.node.empty() ? "" : " on node " + one_line(query.node, 64))));
	if (found.size() > 1)
		return answered(control_error(several(found)));

	const Hold &hold = found[0];
	const RuntimeState state = look_();
	const std::string by = one_line(user_text(request.uid), Released::max_by);
	for (const auto &e : state.engines) {
		if (e->settings().name != hold.key.cluster)
			continue;
		auto inquiry = std::make_shared<ReleaseInquiry>("the engine of cluster " + hold.key.cluster, request.wakeup);
		e->post([engine = e.get(), inquiry, key = hold.key, by, force] {
			inquiry->run([&] { return engine->release_by_hand(key, by, force); });
		});
		return inquiry;
	}
	if (!force || !state.worker)
		return answered(control_error("no engine runs for cluster " + hold.key.cluster + ", so nobody knows whether " +
					      pod_text(hold.key, 0) + " runs (--force releases it all the same)"));
	auto inquiry = std::make_shared<ReleaseInquiry>("the Slurm thread", request.wakeup);
	state.worker->post([this, inquiry, hold, by] {
		inquiry->run([&] { return release_from_ledger(host_, holds_, hold, by); });
	});
	return inquiry;
}

// ---- debug ----

std::shared_ptr<Inquiry> Control::debug(const ControlRequest &request)
{
	const Json wanted = request.body["level"];
	if (wanted.is_string()) {
		std::optional<LogLevel> level;
		for (const auto &[name, value] : levels)
			if (wanted.str() == name)
				level = value;
		if (!level && wanted.str() != "off")
			return answered(control_error("no level \"" + one_line(wanted.str(), 32) +
						      "\"; there are off, verbose and debug"));
		set_log_override(level);
		log_info("debug flag set to %s by %s", std::string(level_name(level)).c_str(),
			 user_text(request.uid).c_str());
	}
	Json out = Json::object();
	return answered(out.set("ok", Json::boolean(true)).set("debug", level_name(log_override())));
}

} // namespace sk8::core
