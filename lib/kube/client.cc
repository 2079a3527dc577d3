// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/kube/client.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "lib/base/json_mend.h"
#include "lib/base/text.h"
#include "lib/kube/call_text.h"
#include "lib/kube/credentials.h"
#include "lib/kube/splitter.h"

namespace sk8::kube {

namespace {

// How long a 429 holds back what is not urgent.
constexpr Millis least_pause{1'000}, longest_pause{10'000};

// An eviction that a PodDisruptionBudget refuses (pods/eviction): the API server has nothing against other requests.
bool is_budget(const Json &status)
{
	const Json causes = status["details"]["causes"];
	for (std::size_t i = 0; i < causes.size(); i++)
		if (causes.at(i)["reason"].str() == "DisruptionBudget")
			return true;
	return false;
}

const char *content_type(PatchType type)
{
	switch (type) {
	case PatchType::merge:
		return "application/merge-patch+json";
	case PatchType::strategic:
		return "application/strategic-merge-patch+json";
	case PatchType::json:
		return "application/json-patch+json";
	}
	return "";
}

} // namespace

class Client::Impl {
public:
	Impl(HttpLoop &loop, ClusterAccess access, ClientOptions options)
		: loop_(loop), access_(std::move(access)), options_(std::move(options)),
		  credentials_(access_, loop.clock(), options_.credentials_cache)
	{
	}

	~Impl()
	{
		for (auto &[id, call] : calls_)
			stop(call);
	}

	struct Call {
		const char *verb = "";
		std::string path, query;
		Target target; // of path
		HttpRequest request; // kept for a second try with a new token
		// Makes the Reply of a complete 2xx answer.
		std::function<void(HttpResponse &, Reply &)> accept;
		Done done;
		bool ends_early = false; // a watch: an answer that breaks off is a plain end
		bool tried_again = false;
		HttpLoop::RequestId sent = 0;
		Millis sent_at{0};
		HttpLoop::TimerId failing = 0;
	};

	CallId begin(Call call)
	{
		CallId id = ++last_id_;
		call.target = target_of(call.path);
		auto [at, fresh] = calls_.emplace(id, std::move(call));
		send(id, at->second);
		return id;
	}

	CallId simple(const char *verb, std::string method, const std::string &path,
		      const Json &body, const char *type, Done done, Priority priority)
	{
		Call call;
		call.verb = verb;
		call.path = path;
		call.request.method = std::move(method);
		call.request.priority = priority;
		call.request.timeout = options_.timeout;
		if (!body.is_null()) {
			call.request.body = body.dump();
			call.request.content_type = type;
		}
		call.accept = &parse_body;
		call.done = std::move(done);
		return begin(std::move(call));
	}

	void cancel(CallId id)
	{
		auto at = calls_.find(id);
		if (at == calls_.end())
			return;
		stop(at->second);
		calls_.erase(at);
	}

	static void parse_body(HttpResponse &response, Reply &reply)
	{
		Result<Json> body = parse_sent_json(response.body);
		if (body.ok())
			reply.body = std::move(*body);
		else
			reply.error = "the answer is " + body.error().message;
	}

	// A watch that stands has been allowed.
	void accepted(const char *verb, const Target &target)
	{
		Reply reply;
		reply.status = 200;
		tell(verb, target, reply);
	}

	HttpLoop &loop_;
	ClusterAccess access_;
	ClientOptions options_;
	std::function<void(const CallOutcome &)> observer_;

private:
	void tell(const char *verb, const Target &target, const Reply &reply) const
	{
		if (observer_)
			observer_({verb, target.resource, target.ns, reply});
	}

	void stop(Call &call)
	{
		loop_.cancel(call.sent);
		loop_.cancel_timer(call.failing);
	}

	void send(CallId id, Call &call)
	{
		Result<Credentials::Current> who = credentials_.get();
		if (!who.ok()) {
			std::string why = who.error().message;
			call.failing = loop_.after(Millis(0), [this, id, why] {
				HttpResponse none;
				none.error = why;
				none.not_sent = true;
				end(id, std::move(none));
			});
			return;
		}
		if (tls_ && (tls_ != who->tls || server_ != who->server))
			loop_.renew_connections();
		tls_ = who->tls;
		server_ = who->server;
		call.request.url = server_ + call.path + call.query;
		call.request.expected_type = "application/json";
		call.request.tls = who->tls;
		call.request.bearer_token = who->token;
		call.request.proxy_url = who->proxy_url;
		call.request.connect_timeout = options_.connect_timeout;
		call.sent_at = loop_.clock().monotonic();
		call.sent = loop_.start(call.request, [this, id](HttpResponse response) {
			answered(id, std::move(response));
		});
	}

	void answered(CallId id, HttpResponse response)
	{
		auto at = calls_.find(id);
		if (at == calls_.end())
			return;
		Call &call = at->second;
		if (options_.answered)
			options_.answered({call.verb, call.target.resource, response.status,
					   loop_.clock().monotonic() - call.sent_at});
		if (response.certificate_problem)
			credentials_.doubt(); // its files may be of two generations, or renewed
		if (response.status == 401 && !call.tried_again && new_token(call)) {
			call.tried_again = true;
			send(id, call);
			return;
		}
		end(id, std::move(response));
	}

	// The token was refused: is there another one by now?
	bool new_token(const Call &call)
	{
		credentials_.doubt();
		Result<Credentials::Current> who = credentials_.get();
		return who.ok() && (who->token != call.request.bearer_token || who->tls != call.request.tls);
	}

	void end(CallId id, HttpResponse response)
	{
		auto at = calls_.find(id);
		if (at == calls_.end())
			return;
		Call call = std::move(at->second);
		calls_.erase(at);
		Reply reply;
		reply.retry_after = response.retry_after;
		reply.date = response.date;
		reply.status = response.status;
		bool success = response.status >= 200 && response.status < 300;
		if (success && (response.error.empty() || call.ends_early)) {
			if (call.accept)
				call.accept(response, reply);
			if (!reply.error.empty())
				reply.error = sentence(call, reply.error);
		} else if (success || response.status == 0) {
			reply.status = 0; // nobody knows what the server did
			reply.not_sent = response.not_sent;
			reply.error = sentence(call, response.error);
		} else {
			refused(call, response, reply);
		}
		if (reply.status == 429 && !is_budget(reply.body))
			loop_.hold_back(std::clamp(reply.retry_after.value_or(Millis(0)), least_pause,
						   longest_pause));
		tell(call.verb, call.target, reply);
		call.done(std::move(reply));
	}

	void refused(const Call &call, HttpResponse &response, Reply &reply)
	{
		if (Result<Json> body = parse_sent_json(response.body); body.ok())
			reply.body = std::move(*body);
		std::string why = "the API server answered " + std::to_string(response.status) + " (" +
				  reason_phrase(response.status) + ")";
		if (std::string_view text = reply.body["message"].str(); !text.empty())
			why += ": " + one_line(without_secret(std::string(text), call.request.bearer_token), 512);
		if (response.status == 401)
			why += "; check the credentials in " + access_.source;
		if (response.status == 403)
			why += std::string("; give the user of ") + access_.source + " the verb " +
			       call.verb + " on " + call.target.resource;
		reply.error = sentence(call, why);
	}

	std::string sentence(const Call &call, const std::string &why) const
	{
		const Target &t = call.target;
		return std::string("cannot ") + call.verb + " " + t.resource +
		       (t.object.empty() ? "" : " " + t.object) + " at " + (server_.empty() ? access_.server : server_) + ": " + why;
	}

	Credentials credentials_;
	std::shared_ptr<const TlsMaterial> tls_; // of the connections that exist
	std::string server_;                     // where they lead to
	CallId last_id_ = 0;
	std::unordered_map<CallId, Call> calls_;
};

Client::Client(HttpLoop &loop, ClusterAccess access, ClientOptions options)
	: impl_(std::make_unique<Impl>(loop, std::move(access), std::move(options)))
{
}

Client::~Client() = default;

Client::CallId Client::get(const std::string &path, Done done)
{
	return impl_->simple("get", "GET", path, Json(), "", std::move(done), Priority::normal);
}

Client::CallId Client::create(const std::string &path, const Json &body, Done done, Priority priority)
{
	return impl_->simple("create", "POST", path, body, "application/json", std::move(done), priority);
}

Client::CallId Client::replace(const std::string &path, const Json &body, Done done)
{
	return impl_->simple("update", "PUT", path, body, "application/json", std::move(done),
			     Priority::normal);
}

Client::CallId Client::patch(const std::string &path, PatchType type, const Json &body, Done done,
			     Priority priority)
{
	return impl_->simple("patch", "PATCH", path, body, content_type(type), std::move(done), priority);
}

Client::CallId Client::delete_(const std::string &path, const Json &options, Done done)
{
	return impl_->simple("delete", "DELETE", path, options, "application/json", std::move(done),
			     Priority::urgent);
}

Client::CallId Client::list(const std::string &path, const Query &query,
			    std::function<void(std::string_view)> item, Done done)
{
	using ItemFn = std::function<bool(std::string_view)>;
	using List = ListSplitter<ItemFn>;
	auto items = std::make_shared<List>(
		[item = std::move(item), left = impl_->options_.max_items](std::string_view text) mutable {
			if (left == 0)
				return false;
			left--;
			item(text);
			return true;
		},
		impl_->options_.max_item);
	Impl::Call call;
	call.verb = "list";
	call.path = path;
	call.query = encode_query(query);
	call.request.timeout = impl_->options_.list_timeout;
	call.request.idle_timeout = impl_->options_.list_idle;
	call.request.on_data = [items](std::string_view bytes) {
		List::Status s = items->feed(bytes);
		return s == List::Status::more || s == List::Status::done;
	};
	call.accept = [items, most = impl_->options_.max_items](HttpResponse &, Reply &reply) {
		switch (items->finish()) {
		case List::Status::done:
			break;
		case List::Status::stopped:
			reply.error = "the list has more objects than " + std::to_string(most);
			return;
		case List::Status::too_large:
			reply.error = "an object of the list is larger than expected";
			return;
		default:
			reply.error = "the answer is not a complete list";
			return;
		}
		HttpResponse envelope;
		envelope.body = items->envelope();
		Impl::parse_body(envelope, reply);
	};
	call.done = std::move(done);
	return impl_->begin(std::move(call));
}

Client::CallId Client::watch(const std::string &path, const Query &query, Millis timeout,
			     WatchHandler handler)
{
	using LineFn = std::function<bool(std::string_view, bool)>;
	auto lines = std::make_shared<LineSplitter<LineFn>>(std::move(handler.line),
							     impl_->options_.max_item);
	Impl::Call call;
	call.verb = "watch";
	call.path = path;
	call.query = encode_query(query);
	call.request.timeout = timeout;
	call.request.idle_timeout = impl_->options_.watch_idle;
	call.request.own_connection = true;
	call.request.on_status = [impl = impl_.get(), target = target_of(path), up = std::move(handler.up)](int status) {
		if (status != 200)
			return;
		impl->accepted("watch", target);
		if (up)
			up();
	};
	call.request.on_data = [lines](std::string_view bytes) { return lines->feed(bytes); };
	call.ends_early = true;
	call.done = std::move(handler.done);
	return impl_->begin(std::move(call));
}

void Client::observe(std::function<void(const CallOutcome &)> observer)
{
	impl_->observer_ = std::move(observer);
}

void Client::cancel(CallId id)
{
	impl_->cancel(id);
}

HttpLoop &Client::loop()
{
	return impl_->loop_;
}

const ClusterAccess &Client::access() const
{
	return impl_->access_;
}

} // namespace sk8::kube
