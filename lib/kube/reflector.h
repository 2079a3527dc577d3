// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Keeps up with all objects of one kind: a complete consistent list, then a watch
// from there, for ever (client-go's reflector; what follows on what: recovery.cc).
// Everything happens on the HttpLoop's thread.
#ifndef SK8_KUBE_REFLECTOR_H
#define SK8_KUBE_REFLECTOR_H

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/result.h"
#include "lib/kube/backoff.h"
#include "lib/kube/client.h"
#include "lib/kube/objects.h"

namespace sk8::kube {

struct ReflectorOptions {
	std::string name;           // for log lines: "pods"
	std::string path;           // resource_path(pods_resource)
	std::string label_selector; // empty: all
	std::string field_selector; // empty: all
	// Who has set which field (metadata.managedFields): about a third of an object, so it is
	// kept only where it is read.
	bool keep_managed_fields = false;
	BackoffLimits backoff;
	// A watch is asked to last min_watch .. max_watch, at random, and is dropped if it
	// is still there watch_grace later.
	Millis min_watch{300'000}, max_watch{600'000}, watch_grace{30'000};
};

// How well it keeps up. Times are monotonic, 0: never.
struct ReflectorHealth {
	bool synced = false; // a complete list has been handed on
	bool lost = false;   // ... and now objects may be out of date
	std::string why;     // the last trouble, one sentence; told while not healthy
	Millis since{0};     // since when it is as it is
	Millis heard{0};     // the last list, event or bookmark: a server sends one about every minute
};

// The part that does not depend on the kind.
class ReflectorCore {
public:
	class Sink {
	public:
		virtual ~Sink() = default;
		virtual void list_begins() = 0;
		// An object of the list that has begun.
		virtual void listed(const Json &object) = 0;
		virtual void list_complete() = 0;
		// An event of the watch. object is what the server sent.
		virtual void changed(const Json &object) = 0;
		virtual void deleted(const Json &object) = 0;
		virtual void lost(const std::string &why) = 0;
		virtual void regained() = 0;
	};

	// client and sink must outlive the reflector. random: in [0, 1).
	ReflectorCore(Client &client, ReflectorOptions options, Random random, Sink &sink);
	~ReflectorCore();
	ReflectorCore(const ReflectorCore &) = delete;
	ReflectorCore &operator=(const ReflectorCore &) = delete;

	void start();
	void stop(); // no callback after it, from a callback too; start() lists again
	// The server answers others again: a pause that it did not ask for ends within a
	// second. How long the next ones are stays as it is. May be called in a callback.
	void hurry();
	bool synced() const;  // a complete list has been handed on since start()
	bool healthy() const; // synced, and not lost since
	ReflectorHealth health() const;
	const std::string &resource_version() const;

private:
	class Impl;
	std::shared_ptr<Impl> impl_;
};

// T: Pod, Node: has meta, and is decoded by a function.
template <class T>
class Reflector final : private ReflectorCore::Sink {
public:
	using Ptr = std::shared_ptr<const T>;
	using Decode = std::function<Result<Ptr>(const Json &)>;

	// Any of them may be empty. They may call stop(), but not destroy the reflector.
	struct Callbacks {
		// All objects there are, consistent: what is not in it is gone (as far as the
		// selectors reach).
		std::function<void(std::vector<Ptr>)> on_replace;
		std::function<void(Ptr)> on_upsert;
		// last: the object's last state.
		std::function<void(Ptr last)> on_delete;
		// From now on objects may be out of date: once for each outage. A plain end of
		// a watch is none.
		std::function<void(std::string why)> on_lost;
		// The watch goes on where it was: nothing was missed. (After on_lost comes
		// either this or on_replace.)
		std::function<void()> on_regained;
	};

	Reflector(Client &client, ReflectorOptions options, Decode decode, Callbacks callbacks,
		  Random random)
		: decode_(std::move(decode)), call_(std::move(callbacks)), what_(options.name),
		  core_(client, std::move(options), std::move(random), *this)
	{
	}

	void start() { core_.start(); }
	void stop() { core_.stop(); }
	void hurry() { core_.hurry(); }
	bool synced() const { return core_.synced(); }
	bool healthy() const { return core_.healthy(); }
	ReflectorHealth health() const { return core_.health(); }
	const std::string &resource_version() const { return core_.resource_version(); }

private:
	void list_begins() override { list_.clear(); }
	void listed(const Json &object) override
	{
		if (Ptr p = decoded(object))
			list_.push_back(std::move(p));
	}
	void list_complete() override
	{
		std::vector<Ptr> list = std::exchange(list_, {});
		if (call_.on_replace)
			call_.on_replace(std::move(list));
	}
	void changed(const Json &object) override
	{
		if (Ptr p = decoded(object); p && call_.on_upsert)
			call_.on_upsert(std::move(p));
	}
	void deleted(const Json &object) override
	{
		if (Ptr p = decoded(object); p && call_.on_delete)
			call_.on_delete(std::move(p));
	}
	void lost(const std::string &why) override
	{
		if (call_.on_lost)
			call_.on_lost(why);
	}
	void regained() override
	{
		if (call_.on_regained)
			call_.on_regained();
	}

	// What has no usable name or uid cannot exist: it is logged and left out.
	Ptr decoded(const Json &object)
	{
		Result<Ptr> p = decode_(object);
		if (p.ok())
			return std::move(*p);
		if (complaints_ < 10) {
			complaints_++;
			log_error("kube: %s: %s", what_.c_str(), p.error().message.c_str());
		}
		return nullptr;
	}

	Decode decode_;
	Callbacks call_;
	std::string what_;
	std::vector<Ptr> list_;
	int complaints_ = 0;
	ReflectorCore core_; // last: stops before the rest goes
};

} // namespace sk8::kube

#endif
