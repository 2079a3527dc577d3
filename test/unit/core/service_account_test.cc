// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// --k8s-service-account: who may have which, and what its job's pod gets.
#include "lib/core/service_account.h"

#include "lib/core/gate.h"
#include "lib/core/job_container.h"
#include "lib/core/reservation.h"
#include "test/unit/catch.h"
#include "test/unit/core/reservation_world.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;

TEST_CASE("service account: nobody gets one that the administrator does not allow him")
{
	const TemplateUser alice{"alice", "physics"};
	CHECK(bad_service_account("alice", {"{user}"}, alice).empty());
	CHECK(bad_service_account("physics-ci", {"x", "{account}-ci"}, alice).empty());
	CHECK(bad_service_account("public-1", {"public-*"}, alice).empty());
	const std::vector<std::string> allowed{"{user}", "{account}-ci"};
	for (const char *other : {"bob", "default", "alic", "alice2", "physics", "chemistry-ci"}) {
		INFO(other);
		CHECK(bad_service_account(other, allowed, alice) == "ServiceAccount " + std::string(other) +
			" is not allowed for user alice; the administrator allows some by reservations.serviceAccounts in slurm-k8s.yaml");
		CHECK_FALSE(bad_service_account(other, {}, alice).empty());
	}
	for (const char *wild : {"*", "?hemistry", "c*", "{user}"}) {
		INFO(wild);
		CHECK_FALSE(bad_service_account("chemistry-ci", {"{account}-ci"}, {"chemistry", wild}).empty());
	}
}

TEST_CASE("service account: what is no name of one is refused whatever is allowed, and not repeated")
{
	for (const std::string &odd : {std::string(), std::string("Alice"), std::string("a/b"), std::string("../a"), std::string("a\nb"), std::string("a b"),
				       std::string("$(id)"), std::string("-a"), std::string("a-"), std::string("a_b"), std::string("\xff"), std::string(254, 'a')}) {
		INFO(odd);
		CHECK(bad_service_account(odd, {"*"}, {"alice", "physics"}) == "no ServiceAccount can have that name");
	}
	CHECK(bad_service_account(std::string(253, 'a'), {"*"}, {"alice", ""}).empty());
}

TEST_CASE("service account: the pod has it, and a token that its kubelet renews is in the job's container alone")
{
	NativeJob job;
	job.ref = {7, 1000};
	job.image = "app:1";
	const auto more = read_pod_template("apiVersion: v1\nkind: Pod\nspec: {containers: [{name: side, image: b, resources: {limits: {memory: 1Mi}}}]}\n",
					    {.allow = true}, {});
	REQUIRE(more);
	const auto spec = [&] { return reservation_object(job, {"n1", 3, 200, {}}, "alice", {}, {}, &*more)["spec"]; };
	CHECK(spec()["serviceAccountName"].is_null());
	CHECK(spec()["volumes"].size() == 1);

	job.service_account = "alice";
	const Json with = spec();
	CHECK(with["serviceAccountName"].str() == "alice");
	CHECK(with["automountServiceAccountToken"].dump() == "false");
	CHECK(with["volumes"].at(1).dump() ==
	      R"({"name":"slurm-k8s-token","projected":{"sources":[{"serviceAccountToken":{"path":"token","expirationSeconds":3600}},)"
	      R"({"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},)"
	      R"({"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"fieldPath":"metadata.namespace"}}]}}]}})");
	CHECK(with["containers"].at(0)["name"].str() == "job");
	CHECK(with["containers"].at(0)["volumeMounts"].at(1).dump() ==
	      R"({"name":"slurm-k8s-token","mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","readOnly":true})");
	CHECK(with["containers"].at(1)["name"].str() == "side");
	CHECK(with["containers"].at(1)["volumeMounts"].size() == 0);

	job.image.clear(); // a pod that only counts
	CHECK(spec()["serviceAccountName"].is_null());
}

TEST_CASE("service account: a template has no volume of the token's name")
{
	const auto t = read_pod_template("apiVersion: v1\nkind: Pod\nspec: {volumes: [{name: slurm-k8s-token, emptyDir: }]}\n", {.allow = true}, {});
	REQUIRE_FALSE(t);
	CHECK(t.error().message == "a volume has no name, or one that is taken: slurm-k8s-token");
}

TEST_CASE("service account: nothing is mounted over the token, and no folder for it is made in a claim or host path")
{
	const struct {
		const char *volume, *path;
		bool takes;
	} rows[] = {
		{"v", "/var/run/secrets/kubernetes.io/serviceaccount", true},
		{"e", "/var/run/secrets/kubernetes.io/serviceaccount/x", true},
		{"e", "/run/secrets/kubernetes.io/serviceaccount", true}, // /var/run is a link in most images
		{"v", "/var/run/secrets/kubernetes.io", true},
		{"v", "/var", true},
		{"c", "/run", true},
		{"e", "/var/run", false},
		{"v", "/va", false},
		{"v", "/var/run/secrets/kubernetes", false},
		{"v", "/data", false},
	};
	for (const auto &row : rows) {
		CAPTURE(row.volume, row.path);
		TemplateSettings allowed{.allow = true, .claims = {"c"}, .host_paths = {"/scratch"}};
		const auto t = read_pod_template(std::string("apiVersion: v1\nkind: Pod\nspec:\n  volumes: [{name: e, emptyDir: }, {name: v, hostPath: "
							     "{path: /scratch}}, {name: c, persistentVolumeClaim: {claimName: c}}]\n  containers: "
							     "[{name: job, volumeMounts: [{name: ") +
							 row.volume + ", mountPath: " + row.path + "}]}]\n", allowed, {"alice", ""});
		REQUIRE(t);
		CHECK(takes_token_folder(*t) == row.takes);
	}
}

TEST_CASE("service account: whatever is in the job's SPANK environment is read up to a bound")
{
	sk8_native_job j{};
	const std::string text(100'000, 'a');
	j.service_account = text.c_str();
	CHECK(native_from_abi(j)->service_account.size() == longest_service_account + 1);
	CHECK(native_from_abi(j)->wants_container());
	CHECK(native_from_abi({})->service_account.empty());
}

// ---- in the gate ----

namespace {

struct AccountWorld : ReservationWorld {
	explicit AccountWorld(const std::string &account, const std::string &image = "app:1", const std::string &pod_template = "",
			      const std::string &refusal = "")
		: ReservationWorld([](ClusterSettings &s) {
			  s.reservations.service_accounts = {"{user}"};
			  s.reservations.templates.allow = true;
		  })
	{
		auto j = std::make_shared<NativeJob>(*job(7, 2, {"n1"}));
		j->image = image;
		j->service_account = account;
		j->pod_template = pod_template;
		native = j;
		fail_create = refusal.empty() ? 0 : 403;
		create_error = refusal;
		controller->jobs_replaced({});
		controller->arrived(j);
		run();
	}
	NativeJobPtr native;
};

} // namespace

TEST_CASE("service account: a job gets its pod with it, or none at all and one sentence")
{
	AccountWorld good("alice");
	CHECK(good.ended.empty());
	CHECK(good.objects.at("slurm-7-3ef-n1")["spec"]["serviceAccountName"].str() == "alice");

	const struct {
		const char *account, *image, *pod_template, *says;
	} rows[] = {
		{"bob", "app:1", "", "7 cancel: --k8s-service-account: ServiceAccount bob is not allowed for user alice; "},
		{"a\nb", "app:1", "", "7 cancel: --k8s-service-account: no ServiceAccount can have that name"},
		{"alice", "", "", "7 cancel: --k8s-service-account: the token is for the job's container, give --k8s-image, too"},
		{"alice", "app:1",
		 "apiVersion: v1\nkind: Pod\nspec: {volumes: [{name: v, emptyDir: }], containers: [{name: job, volumeMounts: "
		 "[{name: v, mountPath: /var/run/secrets/kubernetes.io/serviceaccount/x}]}]}\n",
		 "7 cancel: --k8s-template: container job mounts a volume where the token of its service account is"},
	};
	for (const auto &row : rows) {
		INFO(row.says);
		const AccountWorld w(row.account, row.image, row.pod_template);
		CHECK(w.created == 0);
		REQUIRE(w.ended.size() == 1);
		CHECK(w.ended[0].starts_with(row.says));
	}
}

TEST_CASE("service account: one that is not there ends the job at once, whoever notices it")
{
	AccountWorld of_kubelet("alice");
	of_kubelet.mount_troubles["slurm-7-3ef-n1"] =
		"MountVolume.SetUp failed for volume \"slurm-k8s-token\" : failed to fetch token: serviceaccounts \"alice\" not found";
	of_kubelet.run(Millis(15'000));
	REQUIRE(of_kubelet.ended.size() == 1);
	CHECK(of_kubelet.ended[0].starts_with("7 cancel: --k8s-service-account: on node n1 a volume cannot be mounted: "));

	const AccountWorld of_api_server("alice", "app:1", "", "pods \"slurm-7-3ef-n1\" is forbidden: error looking up service account "
							       "slurm-k8s-jobs/alice: serviceaccount \"alice\" not found");
	REQUIRE(of_api_server.ended.size() == 1);
	CHECK(of_api_server.ended[0].starts_with("7 cancel: --k8s-service-account: the reservation pod on node n1: pods "));
	CHECK(AccountWorld("alice", "app:1", "", "pods \"p\" is forbidden: exceeded quota: none").ended.empty()); // there may be room later
}

TEST_CASE("service account: a pod that is made again when its account is not allowed any more does not have it")
{
	AccountWorld w("alice");
	w.settings.reservations.service_accounts.clear();
	w.restart();
	w.controller->jobs_replaced({w.native});
	w.run();
	w.set_ready("n1", false); // else somebody has evicted it
	w.end_pod("slurm-7-3ef-n1");
	w.run(Millis(5'000));
	REQUIRE(w.pods.contains("slurm-7-3ef-n1"));
	CHECK(w.objects.at("slurm-7-3ef-n1")["spec"]["serviceAccountName"].is_null());
	CHECK(w.ended.empty());
}
