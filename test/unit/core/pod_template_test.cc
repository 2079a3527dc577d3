// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/pod_template.h"

#include <map>
#include <vector>

#include "lib/core/job_container.h"
#include "lib/core/reservation.h"
#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::core;

namespace {

const TemplateUser alice{"alice", "physics"};

TemplateSettings some_allowed()
{
	TemplateSettings s;
	s.allow = true;
	s.config_maps = {"public-*", "{user}"};
	s.secrets = {"{user}-token", "{account}"};
	s.claims = {"data-{user}"};
	s.host_paths = {"/scratch"};
	return s;
}

const std::string head = "apiVersion: v1\nkind: Pod\nspec:\n";
const std::string side = head + "  containers:\n  - name: side\n    image: busybox\n    resources: {limits: {memory: 64Mi}}\n";
const std::string volumes = head + "  volumes:\n  - name: v\n    ";

Result<PodTemplate> read(const std::string &text)
{
	return read_pod_template(text, some_allowed(), alice);
}

std::string wrong(const std::string &text)
{
	const auto out = read(text);
	return out ? "" : out.error().message;
}

} // namespace

TEST_CASE("template: volumes, sidecars and init containers become parts of a pod, nothing else of it")
{
	const auto t = read(R"(apiVersion: v1
kind: Pod
metadata: {name: any}
spec:
  imagePullSecrets: [{name: physics}]
  volumes:
  - {name: shared, emptyDir: }
  - {name: text, configMap: {name: public-motd, items: [{key: a, path: b, mode: 0444}]}}
  - {name: data, persistentVolumeClaim: {claimName: data-alice}}
  - {name: scratch, hostPath: {path: /scratch}}
  initContainers:
  - {name: prepare, image: "busybox:1", command: [sh, -c, "echo 5"], resources: {limits: {memory: 32Mi}}}
  - {name: proxy, image: proxy, restartPolicy: Always, resources: {limits: {memory: 1Gi, cpu: 500m}}}
  containers:
  - name: job
    image: registry.example.com/app:1
    imagePullPolicy: Always
    volumeMounts: [{name: data, mountPath: /data}, {name: scratch, mountPath: /s, readOnly: true}]
  - name: side
    image: busybox
    args: ["-v"]
    env: [{name: A, value: 5}, {name: B, valueFrom: {secretKeyRef: {name: alice-token, key: k}}}]
    envFrom: [{prefix: P_, configMapRef: {name: alice}}]
    resources: {limits: {memory: 64Mi}}
    volumeMounts: [{name: shared, mountPath: /shared, subPath: x}]
)");
	REQUIRE(t);
	CHECK(t->image == "registry.example.com/app:1");
	CHECK(t->pull_policy.str() == "Always");
	CHECK(t->job_mounts.dump() == R"([{"name":"data","mountPath":"/data"},{"name":"scratch","mountPath":"/s","readOnly":true}])");
	CHECK(t->pull_secrets.dump() == R"([{"name":"physics"}])");
	CHECK(t->volumes.at(1)["configMap"]["items"].dump() == R"([{"key":"a","path":"b","mode":292}])"); // 0444
	CHECK(t->volumes.at(0).dump() == R"({"name":"shared","emptyDir":{}})");
	REQUIRE(t->containers.size() == 1);
	const Json side = t->containers.at(0);
	CHECK(side["env"].dump() == R"([{"name":"A","value":"5"},{"name":"B","valueFrom":{"secretKeyRef":{"name":"alice-token","key":"k"}}}])");
	CHECK(side["securityContext"].dump() == R"({"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}})");
	REQUIRE(t->init_containers.size() == 2);
	CHECK(t->init_containers.at(1)["restartPolicy"].str() == "Always");
	CHECK(t->milli_cpu == 500); // the first init container is over when the job starts
	CHECK(t->memory_bytes == (std::int64_t{1024} + 64) << 20);
}

TEST_CASE("template: an ordinary user gains no host path, capability, user, namespace or object of others by it")
{
	const struct {
		std::string text, says;
	} rows[] = {
		// fields that are not on the list
		{head + "  hostNetwork: true\n", "line 4: spec.hostNetwork is none of the fields that a template may have"},
		{head + "  hostPID: true\n", "spec.hostPID is none"},
		{head + "  hostIPC: true\n", "spec.hostIPC is none"},
		{head + "  hostUsers: true\n", "spec.hostUsers is none"},
		{head + "  shareProcessNamespace: true\n", "spec.shareProcessNamespace is none"},
		{head + "  serviceAccountName: admin\n", "line 4: spec.serviceAccountName is not taken from a template: give --k8s-service-account=NAME"},
		{head + "  automountServiceAccountToken: true\n", "spec.automountServiceAccountToken is none"},
		{head + "  nodeName: n2\n", "spec.nodeName is none"},
		{head + "  schedulerName: slurm\n", "spec.schedulerName is none"},
		{head + "  priorityClassName: system-node-critical\n", "spec.priorityClassName is none"},
		{head + "  runtimeClassName: other\n", "spec.runtimeClassName is none"},
		{head + "  tolerations: []\n", "spec.tolerations is none"},
		{head + "  securityContext: {runAsUser: 0}\n", "spec.securityContext is none"},
		{head + "  ephemeralContainers: []\n", "spec.ephemeralContainers is none"},
		{"apiVersion: v1\nkind: Pod\nmetadata: {namespace: kube-system}\n", "metadata.namespace is none"},
		{"apiVersion: v1\nkind: Pod\nmetadata: {labels: {a: b}}\n", "metadata.labels is none"},
		{"apiVersion: v1\nkind: Pod\nstatus: {}\n", "status is none"},
		{side + "    securityContext: {privileged: true}\n", "spec.containers[0].securityContext is none"},
		{side + "    ports: [{hostPort: 80}]\n", "ports is none"},
		{side + "    lifecycle: {}\n", "lifecycle is none"},
		{side + "    livenessProbe: {}\n", "livenessProbe is none"},
		{side + "    volumeDevices: []\n", "volumeDevices is none"},
		{side + "    stdin: true\n", "stdin is none"},
		{volumes + "nfs: {server: s, path: /}\n", "spec.volumes[0].nfs is none"},
		{volumes + "csi: {driver: d}\n", "csi is none"},
		{volumes + "projected: {sources: []}\n", "projected is none"},
		{volumes + "image: {reference: r}\n", "image is none"},
		{side + "    volumeMounts: [{name: v, mountPath: /a, mountPropagation: Bidirectional}]\n", "mountPropagation is none"},
		{side + "    volumeMounts: [{name: v, mountPath: /a, subPathExpr: $(A)}]\n", "subPathExpr is none"},
		{side + "    resources: {limits: {nvidia.com/gpu: 1}}\n", "line 8: "}, // a second "resources"
		// names of others
		{volumes + "secret: {secretName: bob-token}\n", "Secret bob-token is not allowed for user alice; the administrator allows some by reservations.templates.secrets"},
		{volumes + "secret: {secretName: alice-token2}\n", "is not allowed"},
		{volumes + "secret: {}\n", "is not allowed"},
		{volumes + "configMap: {name: private}\n", "ConfigMap private is not allowed"},
		{volumes + "persistentVolumeClaim: {claimName: data-bob}\n", "PersistentVolumeClaim data-bob is not allowed"},
		{head + "  imagePullSecrets: [{name: bob}]\n", "Secret bob is not allowed"},
		{side + "    env: [{name: A, valueFrom: {secretKeyRef: {name: bob-token, key: k}}}]\n", "Secret bob-token is not allowed"},
		{side + "    env: [{name: A, valueFrom: {configMapKeyRef: {name: public-a, key: k}, secretKeyRef: {name: bob, key: k}}}]\n", "needs one source"},
		{side + "    envFrom: [{secretRef: {name: bob}}]\n", "Secret bob is not allowed"},
		{side + "    envFrom: [{configMapRef: {name: public-a}, secretRef: {name: bob}}]\n", "needs one source"},
		// the node's files
		{volumes + "hostPath: {path: /etc}\n", "hostPath /etc is not allowed"},
		{volumes + "hostPath: {path: /scratchy}\n", "hostPath /scratchy is not allowed"},
		{volumes + "hostPath: {path: /scratch/bob}\n", "hostPath /scratch/bob is not allowed"},
		{volumes + "hostPath: {path: /scratch/../etc}\n", "is no plain absolute path"},
		{volumes + "hostPath: {path: /scratch//etc}\n", "is no plain absolute path"},
		{volumes + "hostPath: {path: scratch}\n", "is no plain absolute path"},
		{volumes + "hostPath: {path: /scratch/new, type: DirectoryOrCreate}\n", "makes files"},
		{volumes + "emptyDir: {}\n    hostPath: {path: /scratch}\n", "needs exactly one of"},
		{volumes + "emptyDir: {}\n  - name: v\n    emptyDir: {}\n", "has no name, or one that is taken: v"},
		{head + "  volumes: [{name: slurm-k8s, emptyDir: {}}]\n", "one that is taken: slurm-k8s"},
		// memory that nobody counts
		{volumes + "emptyDir: {medium: Memory}\n", "volume v is in memory and needs a sizeLimit, for example 128Mi"},
		{volumes + "emptyDir: {medium: Memory, sizeLimit: 0}\n", "needs a sizeLimit"},
		{volumes + "emptyDir: {medium: Memory, sizeLimit: -1Mi}\n", "needs a sizeLimit"},
		{volumes + "emptyDir: {medium: Memory, sizeLimit: much}\n", "needs a sizeLimit"},
		{volumes + "emptyDir: {medium: Memory, sizeLimit: 9e18}\n", "needs a sizeLimit"},
		{volumes + "emptyDir: {medium: HugePages, sizeLimit: 1Mi}\n", "volume v has a medium that is none, use Memory or none"},
		{volumes + "emptyDir: {medium: memory, sizeLimit: 1Mi}\n", "has a medium that is none"},
		// groups of an image's choice, on files of others
		{volumes + "hostPath: {path: /scratch}\n  containers:\n  - {name: s, image: i, resources: {limits: {memory: 1Mi}}, volumeMounts: [{name: v, mountPath: /a}]}\n",
		 "only the container \"job\" may have claims and host paths"},
		{volumes + "persistentVolumeClaim: {claimName: data-alice}\n  initContainers:\n  - {name: s, image: i, resources: {limits: {memory: 1Mi}}, volumeMounts: [{name: v, mountPath: /a}]}\n",
		 "only the container \"job\" may have claims and host paths"},
		// the system's folders
		{volumes + "emptyDir: {}\n  containers:\n  - {name: job, image: i, volumeMounts: [{name: v, mountPath: /proc/self}]}\n", "or the system's"},
		{volumes + "emptyDir: {}\n  containers:\n  - {name: job, image: i, volumeMounts: [{name: v, mountPath: /.slurm-k8s}]}\n", "or the system's"},
		{volumes + "emptyDir: {}\n  containers:\n  - {name: job, image: i, volumeMounts: [{name: v, mountPath: /}]}\n", "no plain absolute path"},
		{volumes + "emptyDir: {}\n  containers:\n  - {name: job, image: i, volumeMounts: [{name: v, mountPath: /a/../proc}]}\n", "no plain absolute path"},
		// folders that a runtime would make as root, in what is others', too
		{head + "  volumes: [{name: v, hostPath: {path: /scratch}}, {name: e, emptyDir: }]\n  containers:\n  - {name: job, image: i, "
			"volumeMounts: [{name: e, mountPath: /s/bob/x}, {name: v, mountPath: /s}]}\n",
		 "container job mounts a volume on /s/bob/x, below the claim or host path on /s: a folder would be made for it there, as root"},
		{head + "  volumes: [{name: v, persistentVolumeClaim: {claimName: data-alice}}]\n  containers:\n  - {name: job, image: i, "
			"volumeMounts: [{name: v, mountPath: /d}, {name: v, mountPath: /d/e}]}\n",
		 "container job mounts a volume on /d/e, below the claim or host path on /d"},
		{volumes + "hostPath: {path: /scratch}\n  containers:\n  - {name: job, image: i, volumeMounts: [{name: v, mountPath: /etc}]}\n",
		 "container job mounts a claim or host path on /etc, where the kubelet puts files of its own"},
		{side + "    volumeMounts: [{name: slurm-k8s, mountPath: /a}]\n", "which is none of the template"},
		// a folder in what is others', which root would open past those that are closed
		{volumes + "hostPath: {path: /scratch}\n  containers:\n  - {name: job, image: i, volumeMounts: [{name: v, mountPath: /s, subPath: bob}]}\n",
		 "container job mounts a subPath of volume v: mount the whole claim or host path"},
		{volumes + "persistentVolumeClaim: {claimName: data-alice}\n  containers:\n  - {name: job, image: i, "
			   "volumeMounts: [{name: v, mountPath: /s, subPath: ../bob}]}\n",
		 "container job mounts a subPath of volume v: mount the whole claim or host path"},
		// what is not there, twice, or of another kind
		{"", "it is no Pod"}, {"text", "the template is no object"},
		{"kind: Pod\n", "it is no Pod"},
		{"apiVersion: apps/v1\nkind: Deployment\n", "it is no Pod"},
		{"[]", "the template is no object"},
		{head + "  containers: {}\n", "spec.containers is no list"},
		{head + "  containers: [7]\n", "spec.containers[0] is no object"},
		{head + "  containers: [{name: [a]}]\n", "spec.containers[0].name is no text"},
		{head + "  containers: [{image: i}]\n", "has no name"},
		{side + "  - name: side\n    image: busybox\n", "one that is taken: side"},
		{head + "  initContainers: [{name: job, image: i}]\n", "an init container is called job"},
		{head + "  containers: [{name: s, image: i}]\n", "needs resources.limits.memory"},
		{head + "  containers: [{name: s, image: i, resources: {limits: {memory: -1}}}]\n", "needs resources.limits.memory"},
		{head + "  containers: [{name: s, image: i, resources: {limits: {memory: 1e30}}}]\n", "needs resources.limits.memory"},
		{head + "  containers: [{name: s, image: i, resources: {limits: {memory: 1Mi, cpu: -1}}}]\n", "is none, use for example 500m"},
		{head + "  containers: [{name: s, image: \"a b\", resources: {limits: {memory: 1Mi}}}]\n", "the image of container s is no image's name"},
		{head + "  containers: [{name: s, image: i, restartPolicy: Always, resources: {limits: {memory: 1Mi}}}]\n", "only init containers may have one"},
		{head + "  initContainers: [{name: s, image: i, restartPolicy: Never, resources: {limits: {memory: 1Mi}}}]\n", "only init containers may have one"},
		{head + "  containers: [{name: job, image: i, command: [sh]}]\n", "container job has command, but what runs there are the job's tasks"},
		{head + "  containers: [{name: job, image: i, resources: {limits: {memory: 1Mi}}}]\n", "container job has resources"},
		{volumes + "secret: {secretName: alice-token, defaultMode: 4755}\n", "is no mode of a file"}, {volumes + "secret: {secretName: alice-token, defaultMode: 0888}\n", "is no mode of a file"},
		{volumes + "secret: {secretName: alice-token, defaultMode: 512}\n", "is no mode of a file"},
		{volumes + "persistentVolumeClaim: {claimName: data-alice, readOnly: \"true\"}\n", "neither true nor false"},
		// odd YAML
		{"a: &x [1]\nb: *x\n", "line 2: "},
		{head + head, "line 4: "},
		{"apiVersion: v1\nkind: Pod\n---\napiVersion: v1\n", "line "},
		{"kind: !!python/object:os.system x\n", "line 1: "},
		{std::string(200, '['), "line 1: "},
		{"\xff\xfe", "line "},
		{"a: &a [x, x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\nd: [*c, *c, *c]\n", "line 2: "},
		{head + "  containers: &c [{name: s, args: &a [a, &b [b]], env: *c}]\n", "line 4: "},
		{std::string(20'000, ' '), "is longer than 16384 bytes"},
		{head + std::string(1 << 20, '#'), "is longer than 16384 bytes"},
	};
	for (const auto &row : rows) {
		CAPTURE(row.text, row.says);
		const std::string says = wrong(row.text);
		CAPTURE(says);
		CHECK(says.find(row.says) != std::string::npos);
	}
	const auto off = read_pod_template(side, {}, alice);
	REQUIRE(!off);
	CHECK(off.error().message == "is not allowed here; the administrator allows it by reservations.templates.allow in slurm-k8s.yaml");
}

TEST_CASE("template: a volume may lie below another, but for claims and host paths")
{
	CHECK(wrong(head + R"(  volumes:
  - {name: v, hostPath: {path: /scratch}}
  - {name: e, emptyDir: }
  containers:
  - name: job
    image: i
    volumeMounts: [{name: e, mountPath: /a}, {name: v, mountPath: /a/s}, {name: e, mountPath: /a/sb}, {name: e, mountPath: /a/b/c}]
)").empty());
}

TEST_CASE("template: whose names are whose")
{
	const struct {
		const char *pattern, *name;
		bool takes;
	} rows[] = {
		{"a", "a", true},	      {"a", "ab", false},		{"public-*", "public-x", true},
		{"{user}", "alice", true},    {"{user}", "alice-x", false},	{"x-{user}.y", "x-alice.y", true},
		{"{account}", "physics", true}, {"{user}-{account}", "alice-physics", true}, {"{user}", "{user}", false},
		{"*", "", false},
	};
	for (const auto &row : rows) {
		CAPTURE(row.pattern, row.name);
		CHECK(takes_name(row.pattern, row.name, alice) == row.takes);
	}
	CHECK(!takes_name("data-{user}", "data-", {"", "physics"})); // a user without a name
	// whatever Slurm takes for the name of an account: nothing of it is a wildcard, or stands for another name
	for (const char *odd : {"*", "?ob", "b*", "{user}"}) {
		CAPTURE(odd);
		CHECK(!takes_name("{account}", "bob", {"bob", odd}));
		CHECK(!takes_name("{account}-token", "bob-token", {"alice", odd}));
		CHECK(!takes_name("{account}-{user}", "bob-alice", {"alice", odd}));
		CHECK(!takes_name("{user}", "bob", {odd, "bob"}));
	}
	CHECK(!takes_name("{account}", "bob-token", {"alice", "*"}));
	for (const char *good : {"a", "a-*", "*", "{user}", "data-{user}-x", "{account}"})
		CHECK(bad_pattern(good).empty());
	for (const char *bad : {"", "{user}-*", "{account}?", "{home}", "}", "{user}{user}"}) {
		CAPTURE(bad);
		CHECK(!bad_pattern(bad).empty());
	}
}

TEST_CASE("template: what is made of a user and an account is nobody's who could not be told from another")
{
	const struct {
		const char *pattern, *user, *account, *name;
		bool takes;
	} rows[] = {
		{"{user}-{account}", "a", "b", "a-b", true},
		{"{user}-{account}", "a", "b-c", "a-b-c", false},
		{"{user}-{account}", "a-b", "c", "a-b-c", false},
		{"{user}-{account}", "a", "-b", "a--b", false},
		{"{user}-{account}", "a.b", "c", "a.b-c", true}, // whose else: of every other there is a - in one of them
		{"{account}-{user}", "c", "a-b", "a-b-c", false},
		{"{account}-{user}", "b", "a", "a-b", true},
		{"{user}.{account}", "a-b", "c-d", "a-b.c-d", true},
		{"{user}.{account}", "a.b", "c", "a.b.c", false},
		{"{user}.{account}", "a", "b.c", "a.b.c", false},
		{"{user}.-{account}", "a-b", "c", "a-b.-c", true},
		{"{user}.-{account}", "a-b", "c.d", "a-b.-c.d", false},
		{"{user}-x-{account}", "a-x", "b", "a-x-x-b", false},
		{"{user}-x-{account}", "a", "x-b", "a-x-x-b", false},
		{"x-{user}-y.{account}-z", "a-b", "c", "x-a-b-y.c-z", true},
		{"{user}-ci", "a-b", "c", "a-b-ci", true}, // one name alone
		{"{account}", "a", "b-c", "b-c", true},
	};
	for (const auto &row : rows) {
		CAPTURE(row.pattern, row.user, row.account);
		CHECK(takes_name(row.pattern, row.name, {row.user, row.account}) == row.takes);
		const std::string why = not_taken({"other", row.pattern}, row.name, {row.user, row.account}, "reservations.templates.claims");
		CHECK(why.empty() == row.takes);
		CHECK((row.takes || why == " is not allowed for user " + std::string(row.user) + "; by " + row.pattern + " in reservations.templates.claims "
			"it could be another user's and account's, as user " + row.user + " or account " + row.account + " has in it what separates the two"));
	}
	CHECK(not_taken({"{user}-{account}"}, "b-c", {"a-b", "c"}, "s") == " is not allowed for user a-b; the administrator allows some by s in slurm-k8s.yaml");

	// no two users and accounts of these letters have the same by any of these patterns
	const std::vector<std::string> values{"a", "b", "a-b", "a.b", "b-a", "a-", "-a", ".a", "a.", "a-.b", "a.-b", "b.a-b"};
	for (const char *pattern : {"{user}-{account}", "{user}.{account}", "{user}-.{account}", "{account}.-{user}", "{user}-a-{account}", "{user}.b-{account}"}) {
		CAPTURE(pattern);
		CHECK(bad_pattern(pattern).empty());
		std::map<std::string, int> owners;
		for (const auto &user : values)
			for (const auto &account : values) {
				std::string name = pattern;
				name.replace(name.find("{user}"), 6, user);
				name.replace(name.find("{account}"), 9, account);
				owners[name] += takes_name(pattern, name, {user, account});
			}
		for (const auto &[name, count] : owners) {
			CAPTURE(name);
			CHECK(count <= 1);
		}
	}
	for (const char *bad : {"{user}{account}", "{account}{user}", "{user}x{account}", "-{user}_{account}-"}) {
		CAPTURE(bad);
		CHECK(bad_pattern(bad) == "has no - or . between {user} and {account}: user a of account bc could have what is user ab's of account c");
	}
}

TEST_CASE("template: what its volumes in memory may take is a part of what the job has, and its pod requests it")
{
	CHECK(read(volumes + "emptyDir: {medium: \"\", sizeLimit: 1Ti}\n"));
	const auto t = read(head + R"(  volumes:
  - {name: a, emptyDir: {medium: Memory, sizeLimit: 100Mi}}
  - {name: b, emptyDir: {medium: Memory, sizeLimit: 28Mi}}
  - {name: disk, emptyDir: {sizeLimit: 1Ti}}
  initContainers: [{name: first, image: i, resources: {limits: {memory: 10Mi}}}]
  containers:
  - {name: job, image: app}
  - {name: side, image: i, resources: {limits: {memory: 64Mi}}}
)");
	REQUIRE(t);
	NativeJob job;
	job.pod_template = "x";
	const Json of = reservation_object(job, {"n1", 3, 300, {}}, "alice", {}, {}, &*t)["spec"];
	CHECK(of["containers"].at(0)["resources"]["requests"]["memory"].str() == "236Mi"); // with the other's 64 all that the job has
	CHECK(does_not_fit(*t, {"n1", 1, 202, {}}).empty());
	CHECK(does_not_fit(*t, {"n1", 1, 201, {}}) ==
	      "its init containers may use 202 MiB, with those that stay, and the job has 201 MiB on node n1");
	CHECK(does_not_fit(*t, {"n1", 1, 191, {}}) ==
	      "its containers besides job, and volumes in memory, may use 0 mCPU and 192 MiB together, and the job has "
	      "1 CPUs and 191 MiB on node n1");
	CHECK(does_not_fit(*t, {"n1", 1, 0, {}}).empty()); // Slurm counts none

	std::string most = head + "  volumes:\n";
	for (const char *name : {"a", "b", "c"})
		most += std::string("  - {name: ") + name + ", emptyDir: {medium: Memory, sizeLimit: 1Pi}}\n";
	REQUIRE(read(most));
	CHECK_FALSE(does_not_fit(*read(most), {"n1", 1, 1'000'000, {}}).empty());
}

TEST_CASE("template: its containers take a part of what the job has, and all together take no more")
{
	const auto t = read(head + R"(  initContainers: [{name: first, image: i, resources: {limits: {memory: 900Mi, cpu: 7}}}]
  containers:
  - {name: job, image: app}
  - {name: side, image: i, resources: {limits: {memory: 64Mi, cpu: 500m}}}
)");
	REQUIRE(t);
	NativeJob job;
	job.ref = {7, 1000};
	job.user_id = 1001;
	job.pod_template = "x";
	const auto spec = [&](const NativeShare &share) { return reservation_object(job, share, "alice", {}, {}, &*t)["spec"]; };
	const Json of = spec({"n1", 3, 200, {}});
	CHECK(of["containers"].at(0)["image"].str() == "app");
	CHECK(of["containers"].at(0)["resources"].dump() == R"({"requests":{"cpu":"2500m","memory":"136Mi"}})");
	CHECK(of["containers"].at(1)["resources"].dump() == R"({"requests":{"cpu":"500m","memory":"64Mi"},"limits":{"memory":"64Mi","cpu":"500m"}})");
	CHECK(of["initContainers"].at(0)["resources"]["requests"].dump() == R"({"cpu":"0","memory":"0"})");
	CHECK(of["securityContext"]["runAsUser"].integer_or(-1) == 1001);
	// Slurm does not count memory: neither does its pod
	CHECK(spec({"n1", 3, 0, {}})["containers"].at(1)["resources"]["requests"]["memory"].str() == "0");

	CHECK(does_not_fit(*t, {"n1", 1, 964, {}}).empty());
	CHECK(does_not_fit(*t, {"n1", 1, 963, {}}) == "its init containers may use 964 MiB, with those that stay, and the job has 963 MiB on node n1");
	CHECK(does_not_fit(*t, {"n1", 1, 0, {}}).empty());
	CHECK(does_not_fit(*t, {"n1", 1, 63, {}}) == "its containers besides job may use 500 mCPU and 64 MiB together, and the job has 1 CPUs and 63 MiB on node n1");
	CHECK(!does_not_fit(*t, {"n1", 0, 1000, {}}).empty());
	job.image = "other";
	CHECK(spec({"n1", 3, 200, {}})["containers"].at(0)["image"].str() == "other"); // --k8s-image
}

TEST_CASE("template: device claims are the administrator's to allow, by the names of their objects")
{
	const auto claims = [](const std::string &list, const std::string &more = "") { return head + "  resourceClaims: " + list + "\n" + more; };
	TemplateSettings allowed = some_allowed();
	allowed.resource_claims = {"gpus-*", "{user}"};
	const auto says = [&](const std::string &text) {
		const auto out = read_pod_template(text, allowed, alice);
		return out ? "" : out.error().message;
	};
	const auto t = read_pod_template(claims("[{name: a, resourceClaimName: alice}, {name: b, resourceClaimTemplateName: gpus-2}]", R"(  containers:
  - {name: job, image: app, resources: {claims: [{name: a}, {name: b, request: gpu}]}}
  - {name: side, image: b, resources: {limits: {memory: 1Mi}, claims: [{name: a}]}}
)"),
					 allowed, alice);
	REQUIRE(t);
	CHECK(claims_devices(*t));
	CHECK(t->one_claim == "alice");
	CHECK(t->device_claims.dump() == R"([{"name":"a","resourceClaimName":"alice"},{"name":"b","resourceClaimTemplateName":"gpus-2"}])");
	CHECK(t->job_claims.dump() == R"([{"name":"a"},{"name":"b","request":"gpu"}])");
	CHECK(t->containers.at(0)["resources"].dump() == R"({"limits":{"memory":"1Mi"},"claims":[{"name":"a"}]})");
	CHECK(says(claims("[{name: a, resourceClaimName: bob}]")) ==
	      "ResourceClaim bob is not allowed for user alice; the administrator allows some by reservations.templates.resourceClaims in slurm-k8s.yaml");
	CHECK(says(claims("[{name: a, resourceClaimTemplateName: all}]")).starts_with("ResourceClaimTemplate all is not allowed for user alice"));
	CHECK(says(claims("[{name: a, resourceClaimName: ''}]")).find("is not allowed") != std::string::npos);
	CHECK(says(claims("[{name: a}]")) == "resource claim a needs exactly one of resourceClaimName, resourceClaimTemplateName");
	CHECK(says(claims("[{resourceClaimName: alice, resourceClaimTemplateName: alice}]")).starts_with("a resource claim has no name"));
	CHECK(says(claims("[{name: a, resourceClaimName: alice, resourceClaimTemplateName: alice}]")).find("exactly one of") != std::string::npos);
	CHECK(says(claims("[{name: a, resourceClaimTemplateName: alice}, {name: a, resourceClaimTemplateName: alice}]")).starts_with("a resource claim has no name, or one that is taken"));
	CHECK(says(claims("[{name: a, resourceClaimName: alice}, {name: b, resourceClaimName: alice}]")) == "ResourceClaim alice is named twice");
	CHECK(says(claims("[]", "  containers: [{name: job, image: a, resources: {claims: [{name: x}]}}]\n")) ==
	      "container job has claim x, which is none of the template's resourceClaims");
	CHECK(says(claims("[{name: a, resourceClaimName: alice}]",
			  "  containers: [{name: job, image: a, resources: {claims: [{name: a}], limits: {memory: 1Mi}}}]\n"))
		      .starts_with("container job has resources, but what runs there are the job's tasks"));
	CHECK(wrong(claims("[{name: a, resourceClaimName: alice}]")).find("is not allowed for user alice") != std::string::npos); // by default nothing is
}
