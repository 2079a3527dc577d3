// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A user's template of a pod (--k8s-template): there is one sentence why not, or what comes of it for Kubernetes has nothing that
// the administrator has not allowed, and no field but those that slurm-k8s knows.
#include <algorithm>
#include <set>

#include "lib/base/text.h"
#include "lib/core/job_container.h"
#include "lib/core/pod_template.h"
#include "test/fuzz/fuzz.h"

using namespace sk8;
using namespace sk8::fuzz;
using namespace sk8::core;

namespace {

constexpr std::size_t longest_refusal = 1024; // of a job's comment
constexpr std::int64_t most_bytes = std::int64_t{1} << 50;

TemplateSettings policy()
{
	TemplateSettings s;
	s.allow = true;
	s.config_maps = {"public-*"};
	s.secrets = {"{user}-token"};
	s.claims = {"{user}-data", "{account}-data"};
	s.resource_claims = {"gpu-{user}"};
	s.host_paths = {"/scratch/data"};
	return s;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> allowed)
{
	return std::ranges::find(allowed, name) != allowed.end();
}

void only(const Json &object, std::initializer_list<std::string_view> keys, const char *property)
{
	object.each_member([&](std::string_view key, const Json &) { expect(is_one_of(key, keys), property, key); });
}

void expect_config_map(const Json &name)
{
	expect(name.str().starts_with("public-"), "a ConfigMap is allowed", name.str());
}

void expect_secret(const Json &name)
{
	expect(name.str() == "alice-token", "a Secret is allowed", name.str());
}

// Whatever a container takes its environment from.
void check_source(const Json &of)
{
	for (const char *key : {"configMapRef", "configMapKeyRef"})
		if (!of[key].is_null())
			expect_config_map(of[key]["name"]);
	for (const char *key : {"secretRef", "secretKeyRef"})
		if (!of[key].is_null())
			expect_secret(of[key]["name"]);
}

// The names of those that have files of others in them.
std::set<std::string> check_volumes(const Json &volumes)
{
	std::set<std::string> names, of_others;
	volumes.each_item([&](const Json &v) {
		only(v, {"name", "emptyDir", "configMap", "secret", "persistentVolumeClaim", "hostPath"}, "a volume has known sources");
		expect(v.size() == 2 && names.insert(std::string(v["name"].str())).second, "a volume has a name of its own, and one source", v.dump());
		expect(v["name"].str() != pause_volume, "no volume has the name of ours", v.dump());
		if (!v["configMap"].is_null())
			expect_config_map(v["configMap"]["name"]);
		if (!v["secret"].is_null())
			expect_secret(v["secret"]["secretName"]);
		if (const Json claim = v["persistentVolumeClaim"]; !claim.is_null())
			expect(is_one_of(claim["claimName"].str(), {"alice-data", "physics-data"}), "a claim is allowed", v.dump());
		if (const Json host = v["hostPath"]; !host.is_null())
			expect(host["path"].str() == "/scratch/data" && is_one_of(host["type"].str(), {"", "Directory", "File"}),
			       "a host path is allowed, and nothing is made there", v.dump());
		if (has_files_of_others(v))
			of_others.insert(std::string(v["name"].str()));
	});
	return of_others;
}

void check_mounts(const Json &mounts, const std::set<std::string> &of_others, bool of_job)
{
	mounts.each_item([&](const Json &m) {
		const std::string_view path = m["mountPath"].str();
		const bool others = of_others.contains(std::string(m["name"].str()));
		only(m, {"name", "mountPath", "subPath", "readOnly"}, "a mount has known fields");
		expect(path.size() > 1 && path[0] == '/' && path.find("..") == path.npos, "a mount is somewhere below /", path);
		for (const std::string_view top : {"/proc", "/sys", "/dev", "/.slurm-k8s"})
			expect(path != top && !is_below(path, top), "no mount is on what is the system's", path);
		expect(of_job || !others, "claims and host paths are the job's container's alone", m.dump());
		expect(!others || m["subPath"].str().empty(), "a claim or host path is mounted as a whole", m.dump());
	});
}

void check_container(const Json &c, const std::set<std::string> &of_others)
{
	only(c, {"name", "image", "imagePullPolicy", "command", "args", "workingDir", "restartPolicy", "env", "envFrom", "resources",
		 "securityContext", "volumeMounts"},
	     "a container has known fields");
	expect(c["securityContext"].dump() == without_privileges().dump(), "a container has no privileges", c.dump());
	expect(bad_image(c["image"].str()).empty(), "an image is one", c["image"].str());
	expect(!c["name"].str().empty() && c["name"].str() != job_container, "a container has a name, and not the job's", c["name"].str());
	expect(c["restartPolicy"].is_null() || c["restartPolicy"].str() == "Always", "a restart policy makes a sidecar", c.dump());
	only(c["resources"], {"limits", "claims"}, "a container's requests are not its own to say");
	expect(c["resources"]["limits"]["memory"].is_string(), "a container's memory has a limit", c.dump());
	c["env"].each_item([](const Json &e) { check_source(e["valueFrom"]); });
	c["envFrom"].each_item([](const Json &e) { check_source(e); });
	check_mounts(c["volumeMounts"], of_others, false);
}

void check(const PodTemplate &t)
{
	const auto of_others = check_volumes(t.volumes);
	expect(t.image.empty() || bad_image(t.image).empty(), "the job's image is one", t.image);
	expect(t.pull_policy.is_null() || t.pull_policy.is_string(), "a pull policy is a text");
	check_mounts(t.job_mounts, of_others, true);
	t.containers.each_item([&](const Json &c) { check_container(c, of_others); });
	t.init_containers.each_item([&](const Json &c) { check_container(c, of_others); });
	t.pull_secrets.each_item([](const Json &s) { expect_secret(s["name"]); });
	t.device_claims.each_item([](const Json &c) {
		const Json name = c["resourceClaimName"].is_null() ? c["resourceClaimTemplateName"] : c["resourceClaimName"];
		expect(name.str() == "gpu-alice", "a resource claim is allowed", c.dump());
	});
	for (const std::int64_t bytes : {t.memory_bytes, t.volume_bytes, t.first_memory_bytes})
		expect(bytes >= 0 && bytes <= most_bytes, "what it may use is an amount", std::to_string(bytes));
	expect(t.milli_cpu >= 0, "what it may use is an amount", std::to_string(t.milli_cpu));
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	static const TemplateSettings &allowed = *new TemplateSettings(policy());
	const TemplateUser alice{"alice", "physics"};
	const std::string_view text(reinterpret_cast<const char *>(data), size);
	const Result<PodTemplate> t = read_pod_template(text, allowed, alice);
	expect(!read_pod_template(text, {}, alice).ok(), "nothing is allowed where the administrator allows nothing");
	if (t)
		check(*t);
	else
		expect_sentence(t.error().message, longest_refusal);
	return 0;
}
