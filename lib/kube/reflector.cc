// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
// What happened                        -> what is done
//   start                                 list
//   list complete                         hand it on, watch from its resourceVersion
//   list failed                           back off (or Retry-After), list
//   watch ended when it was agreed        watch from the last resourceVersion
//   ... earlier, or broke off, or is      check, watch from there, once a second at most
//     silent or overdue
//   ... after less than 1 s without news  back off, check, watch from there
//   watch refused: no answer for 60 s,    back off (or Retry-After), check, watch from
//     401, 403, 429, 5xx, also as an        there; after five times 5xx, or when there was
//     ERROR event                           no answer for a minute: list
//   410 by status or ERROR event, or a    list: the place is lost
//     resourceVersion the server does
//     not know yet, or an event or a
//     check that is older than what was
//     seen (it was restored)
//   any other refusal or ERROR event      back off, list
// The check: a server that was restored from a backup accepts a watch from a
// resourceVersion that is still to come and is silent until it comes (Kubernetes API
// concepts, "Unavailable resource versions"); what happens until then would never be
// seen. A list of one object tells where the server is.
// Lists never carry a resourceVersion: the answer is then consistent. One from the
// watch cache may be older than what was seen before, and what a pod holds would be
// given away. They are not paginated: pages bypass the server's watch cache, and the
// splitter never holds more than one object anyway.
#include "lib/kube/reflector.h"

#include <algorithm>

#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/kube/rescue.h"
#include "lib/kube/resource_version.h"
#include "lib/kube/splitter.h"

namespace sk8::kube {

namespace {

constexpr Millis short_watch{1000};
constexpr Millis longest_silence{60'000}; // until the server accepts a watch
constexpr Millis long_outage{60'000};    // in which a server could have been restored
constexpr Millis agreed_margin{10'000};
constexpr Millis hurried{1000}; // at most, by chance: all lists of a cluster are told at once
constexpr int max_refusals = 5;     // of a watch with 5xx, then a list
constexpr int max_short_watches = 3; // in a row, then it counts as lost

// A Status that says: from that resourceVersion nobody can go on.
bool place_is_lost(int code, const Json &status)
{
	if (code == 410)
		return true;
	bool too_new = status["message"].str().find("Too large resource version") !=
		       std::string_view::npos;
	status["details"]["causes"].each_item([&](const Json &cause) {
		too_new = too_new || cause["reason"].str() == "ResourceVersionTooLarge";
	});
	return too_new;
}

// Another try of the same watch may succeed.
bool may_pass(int code)
{
	return code == 0 || code == 401 || code == 403 || code == 429 || code >= 500;
}

} // namespace

class ReflectorCore::Impl {
public:
	Impl(Client &client, ReflectorOptions options, Random random, Sink &sink)
		: client_(client), options_(std::move(options)), random_(std::move(random)), sink_(sink),
		  backoff_(random_, options_.backoff)
	{
	}

	~Impl() { stop(); }

	void start()
	{
		stop();
		lost_ = synced_ = false;
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
	bool healthy() const { return synced_ && !lost_; }
	ReflectorHealth health() const { return {synced_, lost_, why_, since_, heard_at_}; }
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
		sink_.list_begins();
		no_answer_ = false;
		refusals_ = short_watches_ = 0;
		call_ = client_.list(
			options_.path, selectors(), [this](std::string_view item) { listed(item); },
			[this](Reply reply) { list_ended(std::move(reply)); });
	}

	void listed(std::string_view item)
	{
		Result<Json> object = Json::parse(without_managed_fields(item, buffer_));
		if (object.ok())
			return sink_.listed(*object);
		complain("an object of the list is " + object.error().message);
		if (std::optional<Json> rest = rescue_object(item))
			sink_.listed(*rest);
	}

	void list_ended(Reply reply)
	{
		if (!reply.ok())
			return again(Next::list, reply.error, reply.retry_after);
		Json meta = reply.body["metadata"];
		version_ = meta["resourceVersion"].str();
		if (version_.empty() || !meta["continue"].str().empty())
			return again(Next::list, "the list of " + options_.name + " is not complete", {});
		if (!healthy())
			since_ = now();
		synced_ = true;
		lost_ = false;
		heard_at_ = now();
		int run = run_;
		sink_.list_complete();
		if (run == run_) // not stopped by that
			watch();
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
			no_answer_ = true;
			again(Next::watch,
			      "the API server does not answer the watch of " + options_.name, {});
		});
	}

	// An error may still follow at once, as the first event.
	void up()
	{
		client_.loop().cancel_timer(up_timer_);
		up_timer_ = client_.loop().after(short_watch, [this] { works(); });
	}

	void works()
	{
		refusals_ = 0;
		if (!std::exchange(lost_, false))
			return;
		since_ = now();
		log_verbose("kube: %s: the watch works again", options_.name.c_str());
		sink_.regained();
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
		if (type == "ADDED" || type == "MODIFIED")
			sink_.changed(object);
		else if (type == "DELETED")
			sink_.deleted(object);
		else if (type != "BOOKMARK")
			complain("an event of the unknown type " + one_line(type, 32));
		return run == run_;
	}

	bool parse_event(std::string_view line, bool cut, std::string &type, Json &object)
	{
		if (!cut) {
			Result<Json> parsed = Json::parse(without_managed_fields(line, buffer_));
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
			return again(Next::list, broken_, {});
		if (!went_back_.empty())
			return expired(back_text(std::exchange(went_back_, {})));
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
			return ended_plainly();
		}
		refused(code, reply.body, why, reply.retry_after);
	}

	// The watch, or the check before it.
	void refused(int code, const Json &status, const std::string &why, std::optional<Millis> retry_after)
	{
		no_answer_ = code == 0;
		if (place_is_lost(code, status))
			return expired(why);
		bool relist = !may_pass(code) || (code >= 500 && ++refusals_ >= max_refusals);
		again(relist ? Next::list : Next::watch, why, retry_after);
	}

	void ended_plainly()
	{
		bool news = version_ != watch_from_;
		Millis lasted = now() - watch_began_;
		if (lasted >= short_watch) {
			short_watches_ = 0;
			return heard_ && now() >= watch_ends_ - agreed_margin ? watch() : check();
		}
		if (news && short_watches_ == 0) {
			short_watches_ = 1;
			return check();
		}
		// However many news come: not more often than that.
		if (news)
			return later(Next::watch, short_watch - lasted);
		short_watches_++;
		std::string why = "the API server ends each watch of " + options_.name + " at once";
		again(Next::watch, short_watches_ >= max_short_watches ? why : "", {});
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
			return refused(reply.status >= 300 ? reply.status : 0, reply.body, reply.error,
				       reply.retry_after);
		std::string_view at = reply.body["metadata"]["resourceVersion"].str();
		if (is_older(at, version_))
			return expired(back_text(at));
		watch();
	}

	std::string back_text(std::string_view to) const
	{
		return "the API server's resourceVersion went back from " + one_line(version_, 32) + " to " +
		       one_line(to, 32) + ": was etcd restored from a backup? All " + options_.name +
		       " are listed anew";
	}

	// --- after something went wrong --------------------------------------------------

	enum class Next { list, watch };

	// The place in the stream is gone. That happens to the best; only when it happens
	// again soon there is a pause.
	void expired(const std::string &why)
	{
		bool first = backoff_.fresh(now());
		Millis delay = backoff_.next(now());
		int run = run_;
		tell_lost(why);
		if (run != run_)
			return;
		asked_to_wait_ = false;
		later(Next::list, first ? Millis(0) : delay);
	}

	// why empty: nothing is lost yet.
	void again(Next next, const std::string &why, std::optional<Millis> retry_after)
	{
		Millis delay = std::max(backoff_.next(now()), retry_after.value_or(Millis(0)));
		int run = run_;
		if (!why.empty())
			tell_lost(why);
		if (run != run_)
			return;
		asked_to_wait_ = retry_after.has_value();
		later(next, delay);
	}

	void tell_lost(const std::string &why)
	{
		why_ = why;
		bool known = std::exchange(lost_, true);
		log_debug("kube: %s: %s: %s", options_.name.c_str(), known ? "still lost" : "lost", why.c_str());
		if (known)
			return;
		lost_at_ = since_ = now();
		sink_.lost(why);
	}

	void later(Next next, Millis delay)
	{
		pausing_ = true;
		after_pause_ = next;
		pause_ends_ = now() + delay;
		timer_ = client_.loop().after(delay, [this, next] {
			pausing_ = false;
			bool long_gone = lost_ && no_answer_ && now() - lost_at_ >= long_outage;
			next == Next::list || long_gone ? list() : check();
		});
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
	Backoff backoff_;
	int run_ = 0; // changes at stop()
	bool synced_ = false, lost_ = false, complained_ = false;
	bool heard_ = false;     // something came on this watch
	bool no_answer_ = false; // the last refusal was none, or no whole one
	bool pausing_ = false;   // timer_ runs, until pause_ends_, for after_pause_
	bool asked_to_wait_ = false; // by Retry-After
	Next after_pause_ = Next::list;
	Millis pause_ends_{0};
	Millis complained_at_{0}, heard_at_{0}, lost_at_{0}, watch_ends_{0};
	std::string version_, watch_from_, broken_, went_back_, buffer_, why_;
	Json error_event_;
	Millis watch_began_{0}, since_{0};
	int refusals_ = 0, short_watches_ = 0;
	Client::CallId call_ = 0;
	HttpLoop::TimerId timer_ = 0, up_timer_ = 0;
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
