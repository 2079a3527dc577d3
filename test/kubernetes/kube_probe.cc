// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// kube_probe KUBECONFIG [NAMESPACE] NODE: drives lib/kube against an API server, real or
// simulated, and says what each step did. It lists and watches pods, creates one,
// patches it, binds it to NODE, deletes it, and compares what the watch tells with
// what was done. Exit code 0: all steps came out as they should; 1: one did not; 2: usage.
// "kube_probe KUBECONFIG follow SECONDS" only follows all pods and prints the events.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <unistd.h>

#include "lib/kube/client.h"
#include "lib/kube/reflector.h"
#include "lib/kube/store.h"

using namespace sk8;
using namespace sk8::kube;

namespace {

struct Probe {
	SystemClock clock;
	HttpLoop loop{clock};
	std::mt19937 random{std::random_device{}()};
	Store<Pod> pods;
	std::string last_event;

	double chance() { return std::uniform_real_distribution<double>(0, 1)(random); }

	Reflector<Pod>::Callbacks callbacks()
	{
		return {[this](std::vector<PodPtr> all) {
				std::printf("replace: %zu pods\n", all.size());
				pods.replace(std::move(all));
			},
			[this](PodPtr p) {
				std::printf("upsert: %s/%s node=%s phase=%s deleting=%d %s\n",
					    p->meta.ns.c_str(), p->meta.name.c_str(),
					    p->node_name.c_str(), p->phase.c_str(), p->meta.deleting,
					    p->problem.c_str());
				pods.upsert(std::move(p));
			},
			[this](PodPtr p) {
				std::printf("delete: %s/%s\n", p->meta.ns.c_str(), p->meta.name.c_str());
				pods.erase(p->meta.uid);
			},
			[](std::string why) { std::printf("lost: %s\n", why.c_str()); },
			[] { std::printf("regained\n"); }};
	}

	// Runs the loop until the condition holds, at most seconds long.
	template <class F>
	bool until(F &&condition, int seconds = 20)
	{
		Millis end = clock.monotonic() + Millis(seconds * 1000);
		while (!condition() && clock.monotonic() < end)
			loop.run_once(Millis(200));
		std::fflush(stdout);
		return condition();
	}

	// Runs one call to its end.
	template <class F>
	Reply call(const char *what, F &&start)
	{
		std::optional<Reply> got;
		start([&](Reply r) { got = std::move(r); });
		until([&] { return got.has_value(); }, 60);
		Reply out;
		if (got)
			out = std::move(*got);
		else
			out.error = "no reply at all";
		std::printf("%s: %d %s\n", what, out.status, out.error.c_str());
		return out;
	}
};

int failures = 0;

void expect(bool ok, const char *what)
{
	std::printf("%s: %s\n", ok ? "ok" : "NOT OK", what);
	failures += !ok;
}

Json pod_named(const char *name)
{
	auto body = Json::parse(std::string(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")") + name +
				R"("},"spec":{"schedulerName":"slurm","containers":[{"name":"a",)"
				R"("image":"localhost/busybox:test","command":["sleep","1000"],)"
				R"("resources":{"requests":{"cpu":"250m","memory":"16Mi"}}}]}})");
	return *body;
}

Json json(const std::string &text)
{
	return *Json::parse(text);
}

int scenario(Client &client, Probe &probe, const std::string &ns, const std::string &node)
{
	Reflector<Pod> reflector(client, {"pods", resource_path(pods_resource), "", "", {}}, decode_pod,
				 probe.callbacks(), [&] { return probe.chance(); });
	reflector.start();
	expect(probe.until([&] { return reflector.synced(); }), "the list is complete");

	const std::string name = "probe-" + std::to_string(::getpid());
	const std::string path = resource_path(pods_resource, ns, name);
	Reply made = probe.call("create", [&](Client::Done d) {
		client.create(resource_path(pods_resource, ns), pod_named(name.c_str()), d);
	});
	expect(made.status == 201, "the pod is created");
	expect(probe.call("create again", [&](Client::Done d) {
			    client.create(resource_path(pods_resource, ns), pod_named(name.c_str()), d);
		    }).status == 409,
	       "a second one of that name is a conflict");
	auto seen = [&] { return probe.pods.find_by_name(ns, name); };
	expect(probe.until([&] { return seen() != nullptr; }), "the watch shows it");
	expect(seen() && seen()->request.milli_cpu == 250, "with its request");

	Reply patched = probe.call("patch merge", [&](Client::Done d) {
		client.patch(path, PatchType::merge, json(R"({"metadata":{"annotations":{"a":"b"}}})"), d);
	});
	expect(patched.status == 200, "the annotation is patched");
	Reply status = probe.call("patch status", [&](Client::Done d) {
		client.patch(path + "/status", PatchType::strategic,
			     json(R"({"status":{"conditions":[{"type":"PodScheduled","status":"False",)"
				  R"("reason":"SlurmPending","message":"waits"}]}})"),
			     d);
	});
	expect(status.status == 200, "the condition is patched");
	expect(probe.until([&] { return seen() && seen()->scheduled_reason == "SlurmPending"; }),
	       "the watch shows the condition");

	const std::string uid(made.body["metadata"]["uid"].str());
	auto binding = [&](const std::string &of) {
		return json(R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":")" + name +
			    R"(","uid":")" + of + R"(","annotations":{"bound":"yes"}},"target":{"kind":"Node","name":")" +
			    node + "\"}}");
	};
	auto bind = [&](const char *what, const std::string &of) {
		return probe.call(what, [&](Client::Done d) { client.create(path + "/binding", binding(of), d); });
	};
	expect(bind("bind with another uid", "00000000-0000-0000-0000-000000000000").status == 409,
	       "a Binding for another uid is refused");
	expect(bind("bind", uid).status == 201, "the pod is bound");
	expect(bind("bind again", uid).status == 409, "a second Binding is a conflict");
	expect(probe.until([&] { return seen() && seen()->node_name == node; }), "the watch shows the node");
	expect(seen() && seen()->meta.annotations.count("bound"), "and the Binding's annotation");

	auto delete_ = [&](const std::string &of) {
		return probe.call("delete", [&](Client::Done d) {
			client.delete_(path,
				       json(R"({"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0,)"
					    R"("preconditions":{"uid":")" + of + "\"}}"),
				       d);
		});
	};
	expect(delete_("00000000-0000-0000-0000-000000000000").status == 409, "a wrong uid protects it");
	expect(delete_(uid).status == 200, "the pod is deleted");
	expect(probe.until([&] { return seen() == nullptr; }), "the watch shows that");
	Reply gone = probe.call("get", [&](Client::Done d) { client.get(path, d); });
	expect(gone.status == 404, "and it is gone");
	expect(reflector.healthy(), "the watch was never lost");
	return failures ? 1 : 0;
}

int follow(Client &client, Probe &probe, int seconds)
{
	Reflector<Pod> reflector(client, {"pods", resource_path(pods_resource), "", "", {}}, decode_pod,
				 probe.callbacks(), [&] { return probe.chance(); });
	reflector.start();
	Millis end = probe.clock.monotonic() + Millis(seconds * 1000);
	probe.until([&] { return probe.clock.monotonic() >= end; }, seconds + 1);
	return reflector.healthy() ? 0 : 1;
}

} // namespace

int main(int argc, char **argv)
{
	if (argc < 3 || argc > 4) {
		std::fprintf(stderr, "usage: kube_probe KUBECONFIG [NAMESPACE] NODE\n"
				     "       kube_probe KUBECONFIG follow SECONDS\n");
		return 2;
	}
	std::signal(SIGPIPE, SIG_IGN);
	Probe probe;
	Result<ClusterAccess> access = load_kubeconfig(argv[1], "", ::geteuid());
	if (!access.ok()) {
		std::fprintf(stderr, "kube_probe: %s\n", access.error().message.c_str());
		return 1;
	}
	Client client(probe.loop, *access);
	if (argc == 4 && std::string(argv[2]) == "follow")
		return follow(client, probe, std::atoi(argv[3]));
	return scenario(client, probe, argc == 4 ? argv[2] : "default", argv[argc - 1]);
}
