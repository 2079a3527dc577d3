// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
// The streams. What is done after one has ended: recovery.cc.
// Lists never carry a resourceVersion: the answer is then consistent. One from the
// watch cache may be older than what was seen before, and what a pod holds would be
// given away. They are not paginated: pages bypass the server's watch cache, and the
// splitter never holds more than one object anyway.
#include "lib/kube/reflector.h"

#include <algorithm>

#include "lib/base/guard.h"
#include "lib/base/json_mend.h"
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/kube/recovery.h"
#include "lib/kube/rescue.h"
#include "lib/kube/resource_version.h"
#include "lib/kube/splitter.h"

namespace sk8::kube {

static constexpr Millis longest_silence{60'000}; // until the server accepts a watch
static constexpr Millis agreed_margin{10'000};
static constexpr Millis hurried{1000}; // at most, by chance: all lists of a cluster are told at once

class ReflectorCore::Impl {
public:
	Impl(Client &client, ReflectorOptions options, Random random, Sink &sink)
		: client_(client), options_(std::move(options)), random_(std::move(random)), sink_(sink),
		  recovery_(random_, options_.backoff)
	{
	}

	~Impl() { stop(); }

	void start()
	{
		stop();
		synced_ = false;
		lost_at_.reset();
		since_ = now();
		version_.clear();
		list();
	}

	void stop()
	{
		run_++;
		client_.cancel(call_);
		client_.loop().cancel_timer(timer_);
		client_.loop().cancel_timer(up_timer_);
		client_.loop().cancel_timer(relist_timer_);
		relist_at_.reset();
		pausing_ = false;
	}

	void hurry()
	{
		if (!pausing_ || asked_to_wait_)
			return;
		const Millis delay(static_cast<Millis::rep>(double(hurried.count()) * chance()));
		if (now() + delay >= pause_ends_)
			return;
		client_.loop().cancel_timer(timer_);
		later(after_pause_, delay);
	}

	bool synced() const { return synced_; }
	bool healthy() const { return synced_ && !lost_at_; }
	ReflectorHealth health() const { return {synced_, lost_at_.has_value(), why_, since_, heard_at_}; }
	const std::string &version() const { return version_; }

private:
	Millis now() const { return client_.loop().clock().monotonic(); }
	double chance() const { return random_ ? std::clamp(random_(), 0.0, 1.0) : 0.5; }

	Query selectors() const
	{
		Query out;
		if (!options_.label_selector.empty())
			out.emplace_back("labelSelector", options_.label_selector);
		if (!options_.field_selector.empty())
			out.emplace_back("fieldSelector", options_.field_selector);
		return out;
	}

	// --- list ------------------------------------------------------------------

	void list()
	{
		client_.loop().cancel_timer(relist_timer_);
		relist_at_.reset();
		sink_.list_begins();
		recovery_.list_begins();
		call_ = client_.list(
			options_.path, selectors(), [this](std::string_view item) { listed(item); },
			[this](Reply reply) { list_ended(std::move(reply)); });
	}

	std::string_view wanted(std::string_view object)
	{
		return options_.keep_managed_fields ? object : without_managed_fields(object, buffer_);
	}

	void listed(std::string_view item)
	{
		Result<Json> object = parse_sent_json(wanted(item));
		if (object.ok())
			return sink_.listed(*object);
		complain("an object of the list is " + object.error().message);
		if (std::optional<Json> rest = rescue_object(item))
			sink_.listed(*rest);
	}

	void list_ended(Reply reply)
	{
		if (!reply.ok())
			return go_on(recovery_.list_failed(now(), reply.retry_after), reply.error);
		Json meta = reply.body["metadata"];
		version_ = meta["resourceVersion"].str();
		if (version_.empty() || !meta["continue"].str().empty())
			return go_on(recovery_.list_failed(now(), {}), "the list of " + options_.name + " is not complete");
		if (!healthy())
			since_ = now();
		const bool was_synced = std::exchange(synced_, true);
		lost_at_.reset();
		heard_at_ = now();
		int run = run_;
		const bool taken = takes([&] { sink_.list_complete(); });
		if (run != run_) // stopped by that
			return;
		if (taken)
			return watch();
		synced_ = was_synced;
		go_on(recovery_.list_failed(now(), {}), not_taken("the list"));
	}

	// --- watch -----------------------------------------------------------------

	void watch()
	{
		using std::chrono::duration_cast;
		using std::chrono::seconds;
		double most = double((options_.max_watch - options_.min_watch).count());
		auto length = duration_cast<seconds>(options_.min_watch +
						     Millis(static_cast<Millis::rep>(most * chance())));
		watch_began_ = now();
		watch_ends_ = watch_began_ + length;
		watch_from_ = version_;
		heard_ = false;
		error_event_ = Json();
		broken_.clear();
		went_back_.clear();
		Query query = selectors();
		query.emplace_back("watch", "true");
		query.emplace_back("allowWatchBookmarks", "true");
		query.emplace_back("resourceVersion", version_);
		query.emplace_back("timeoutSeconds", std::to_string(length.count()));
		// The server ends it in time: whatever lasts longer is a dead connection.
		call_ = client_.watch(options_.path, query, length + options_.watch_grace,
				      {[this] { up(); },
				       [this](std::string_view line, bool cut) { return event(line, cut); },
				       [this](Reply reply) { watch_ended(std::move(reply)); }});
		up_timer_ = client_.loop().after(longest_silence, [this] {
			client_.cancel(call_);
			go_on(recovery_.refused(now(), 0, Json(), {}), "the API server does not answer the watch of " + options_.name);
		});
	}

	// An error may still follow at once, as the first event.
	void up()
	{
		client_.loop().cancel_timer(up_timer_);
		up_timer_ = client_.loop().after(Recovery::short_watch, [this] { works(); });
	}

	void works()
	{
		recovery_.works();
		if (relist_at_ || !std::exchange(lost_at_, {}))
			return; // what was missed, only a list has
		since_ = now();
		log_verbose("kube: %s: the watch works again", options_.name.c_str());
		const int run = run_;
		if (!takes([&] { sink_.regained(); }) && run == run_)
			missed("the end of an outage");
	}

	// Returns false to end the watch.
	bool event(std::string_view line, bool cut)
	{
		std::string type;
		Json object;
		if (!parse_event(line, cut, type, object)) {
			broken_ = "an event of the watch cannot be read";
			return false;
		}
		if (type == "ERROR") {
			error_event_ = object;
			return false;
		}
		std::string_view v = object["metadata"]["resourceVersion"].str();
		if (is_older(v, version_)) {
			if (type == "BOOKMARK")
				return true;
			went_back_ = v;
			return false;
		}
		int run = run_;
		heard_at_ = now();
		heard_ = true;
		works();
		if (run != run_)
			return false;
		// Before the sink sees it: an event on which it fails must not come for ever.
		if (!v.empty())
			version_ = v;
		bool taken = true;
		if (type == "ADDED" || type == "MODIFIED")
			taken = takes([&] { sink_.changed(object); });
		else if (type == "DELETED")
			taken = takes([&] { sink_.deleted(object); });
		else if (type != "BOOKMARK")
			complain("an event of the unknown type " + one_line(type, 32));
		if (!taken && run == run_)
			missed("an event of the watch");
		return taken && run == run_;
	}

	bool parse_event(std::string_view line, bool cut, std::string &type, Json &object)
	{
		if (!cut) {
			Result<Json> parsed = parse_sent_json(wanted(line));
			if (parsed.ok()) {
				type = (*parsed)["type"].str();
				object = (*parsed)["object"];
				return !type.empty() && object.is_object();
			}
			complain("an event is " + parsed.error().message);
		} else {
			complain("an event is larger than expected");
		}
		std::optional<RescuedEvent> rest = rescue_event(line);
		if (!rest)
			return false;
		type = rest->type;
		object = rest->object;
		return true;
	}

	void watch_ended(Reply reply)
	{
		client_.loop().cancel_timer(up_timer_);
		if (!broken_.empty())
			return go_on(recovery_.broken(now()), broken_);
		if (!went_back_.empty())
			return go_on(recovery_.expired(now()), back_text(std::exchange(went_back_, {})));
		int code = reply.status;
		std::string why = reply.error;
		if (!error_event_.is_null()) {
			reply.body = error_event_;
			code = static_cast<int>(
				std::clamp<std::int64_t>(error_event_["code"].integer_or(500), 1, 999));
			why = "the API server ended the watch of " + options_.name + " with " +
			      std::to_string(code) + ": " +
			      one_line(error_event_["message"].str("no reason"), 256);
		} else if (reply.ok()) {
			const Millis lasted = now() - watch_began_;
			const bool agreed = heard_ && now() >= watch_ends_ - agreed_margin;
			return go_on(recovery_.ended(now(), {lasted, version_ != watch_from_, agreed}),
				     "the API server ends each watch of " + options_.name + " at once");
		}
		go_on(recovery_.refused(now(), code, reply.body, reply.retry_after), why);
	}

	// Is the server where it was?
	void check()
	{
		call_ = client_.list(options_.path, {{"limit", "1"}}, [](std::string_view) {},
				     [this](Reply reply) { checked(reply); });
	}

	void checked(const Reply &reply)
	{
		if (!reply.ok())
			return go_on(recovery_.refused(now(), reply.status >= 300 ? reply.status : 0, reply.body, reply.retry_after),
				     reply.error);
		std::string_view at = reply.body["metadata"]["resourceVersion"].str();
		if (is_older(at, version_))
			return go_on(recovery_.expired(now()), back_text(at));
		watch();
	}

	std::string back_text(std::string_view to) const
	{
		return "the API server's resourceVersion went back from " + one_line(version_, 32) + " to " + one_line(to, 32) +
		       ": was etcd restored from a backup? All " + options_.name + " are listed anew";
	}

	// --- after something went wrong --------------------------------------------------

	// why: told if something is lost by it.
	void go_on(const Recovery::Step &step, const std::string &why)
	{
		const int run = run_;
		if (step.lost)
			tell_lost(why);
		if (run != run_)
			return;
		if (!step.lost && step.delay == Millis(0))
			return begin(step.next);
		asked_to_wait_ = step.asked_to_wait;
		later(step.next, step.delay);
	}

	void tell_lost(const std::string &why)
	{
		why_ = why;
		const bool known = lost_at_.has_value();
		log_debug("kube: %s: %s: %s", options_.name.c_str(), known ? "still lost" : "lost", why.c_str());
		if (known)
			return;
		lost_at_ = since_ = now();
		(void) takes([&] { sink_.lost(why); }); // there is nobody else to tell
	}

	// False: it threw. A bug there, or memory that has run out, must not make us deaf.
	template <class F>
	bool takes(F &&f)
	{
		return guard(options_.name.c_str(), false, [&] {
			f();
			return true;
		});
	}

	std::string not_taken(const char *what) const
	{
		return std::string(what) + " of " + options_.name + " has come, but it could not be dealt with";
	}

	// Once for all that is missed until then: all is listed, later each time that this happens. The watch brings news meanwhile.
	void missed(const char *what)
	{
		if (relist_at_)
			return;
		const Millis delay = recovery_.list_failed(now(), {}).delay;
		relist_at_ = now() + delay;
		relist_timer_ = client_.loop().after(delay, [this] {
			if (pausing_)
				return; // which may be the server's wish; then a list comes next
			client_.cancel(call_);
			client_.loop().cancel_timer(up_timer_);
			list();
		});
		tell_lost(not_taken(what));
	}

	bool relist_due() const { return relist_at_ && now() >= *relist_at_; }

	void later(Recovery::Next next, Millis delay)
	{
		pausing_ = true;
		after_pause_ = next;
		pause_ends_ = now() + delay;
		timer_ = client_.loop().after(delay, [this, next] {
			pausing_ = false;
			begin(relist_due() ? Recovery::Next::list
					   : recovery_.after_pause(next, lost_at_ ? now() - *lost_at_ : Millis(0)));
		});
	}

	void begin(Recovery::Next next)
	{
		switch (next) {
		case Recovery::Next::list: return list();
		case Recovery::Next::check: return check();
		case Recovery::Next::watch: return watch();
		}
	}

	// Once a minute at most: one bad object would fill the log.
	void complain(const std::string &what)
	{
		if (complained_ && now() - complained_at_ < Millis(60'000))
			return;
		complained_ = true;
		complained_at_ = now();
		log_error("kube: %s: %s", options_.name.c_str(), what.c_str());
	}

	Client &client_;
	ReflectorOptions options_;
	Random random_;
	Sink &sink_;
	Recovery recovery_;
	int run_ = 0; // changes at stop()
	bool synced_ = false, complained_ = false;
	std::optional<Millis> lost_at_, relist_at_; // relist_at_: see missed()
	bool heard_ = false;     // something came on this watch
	bool pausing_ = false;   // timer_ runs, until pause_ends_, for after_pause_
	bool asked_to_wait_ = false; // by Retry-After
	Recovery::Next after_pause_ = Recovery::Next::list;
	Millis pause_ends_{0};
	Millis complained_at_{0}, heard_at_{0}, watch_ends_{0};
	std::string version_, watch_from_, broken_, went_back_, buffer_, why_;
	Json error_event_;
	Millis watch_began_{0}, since_{0};
	Client::CallId call_ = 0;
	HttpLoop::TimerId timer_ = 0, up_timer_ = 0, relist_timer_ = 0;
};

ReflectorCore::ReflectorCore(Client &client, ReflectorOptions options, Random random, Sink &sink)
	: impl_(std::make_shared<Impl>(client, std::move(options), std::move(random), sink))
{
}

ReflectorCore::~ReflectorCore() = default;

void ReflectorCore::start()
{
	impl_->start();
}

void ReflectorCore::stop()
{
	impl_->stop();
}

void ReflectorCore::hurry()
{
	impl_->hurry();
}

bool ReflectorCore::synced() const
{
	return impl_->synced();
}

bool ReflectorCore::healthy() const
{
	return impl_->healthy();
}

ReflectorHealth ReflectorCore::health() const
{
	return impl_->health();
}

const std::string &ReflectorCore::resource_version() const
{
	return impl_->version();
}

} // namespace sk8::kube
