// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/pod_template.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "lib/base/quantity.h"
#include "lib/base/text.h"
#include "lib/base/yaml.h"
#include "lib/core/job_container.h"
#include "lib/core/service_account.h"

namespace sk8::core {

// ---- the fields that there are ----

namespace {

enum class Kind { text, mode, flag, list, object };

struct Shape;
struct Member {
	const char *key;
	const Shape *shape;
};
struct Shape {
	Kind kind;
	std::vector<Member> members; // object: those that may be there
	const Shape *item = nullptr; // list
};

// Made once and never destroyed: no destructor runs when slurmctld ends.
const Shape *leaf(Kind kind)
{
	return new Shape{kind, {}};
}

const Shape *object_of(std::vector<Member> members)
{
	return new Shape{Kind::object, std::move(members)};
}

const Shape *list_of(const Shape *item)
{
	return new Shape{Kind::list, {}, item};
}

const Shape *container_shape(const Shape *text, const Shape *flag)
{
	const Shape *texts = list_of(text);
	const Shape *key = object_of({{"name", text}, {"key", text}, {"optional", flag}});
	const Shape *source = object_of({{"configMapKeyRef", key}, {"secretKeyRef", key}, {"fieldRef", object_of({{"fieldPath", text}})}});
	const Shape *all = object_of({{"name", text}, {"optional", flag}});
	return object_of({
		{"name", text},
		{"image", text},
		{"imagePullPolicy", text},
		{"command", texts},
		{"args", texts},
		{"workingDir", text},
		{"restartPolicy", text},
		{"env", list_of(object_of({{"name", text}, {"value", text}, {"valueFrom", source}}))},
		{"envFrom", list_of(object_of({{"prefix", text}, {"configMapRef", all}, {"secretRef", all}}))},
		{"resources", object_of({{"limits", object_of({{"cpu", text}, {"memory", text}})},
					 {"claims", list_of(object_of({{"name", text}, {"request", text}}))}})},
		{"volumeMounts", list_of(object_of({{"name", text}, {"mountPath", text}, {"subPath", text}, {"readOnly", flag}}))},
	});
}

const Shape &pod_shape()
{
	static const Shape *shape = [] {
		const Shape *text = leaf(Kind::text), *mode = leaf(Kind::mode), *flag = leaf(Kind::flag);
		const Shape *items = list_of(object_of({{"key", text}, {"path", text}, {"mode", mode}}));
		const Shape *volume = object_of({
			{"name", text},
			{"emptyDir", object_of({{"medium", text}, {"sizeLimit", text}})},
			{"configMap", object_of({{"name", text}, {"items", items}, {"optional", flag}, {"defaultMode", mode}})},
			{"secret", object_of({{"secretName", text}, {"items", items}, {"optional", flag}, {"defaultMode", mode}})},
			{"persistentVolumeClaim", object_of({{"claimName", text}, {"readOnly", flag}})},
			{"hostPath", object_of({{"path", text}, {"type", text}})},
		});
		const Shape *containers = list_of(container_shape(text, flag));
		const Shape *claim = object_of({{"name", text}, {"resourceClaimName", text}, {"resourceClaimTemplateName", text}});
		const Shape *spec = object_of({
			{"volumes", list_of(volume)},
			{"containers", containers},
			{"initContainers", containers},
			{"imagePullSecrets", list_of(object_of({{"name", text}}))},
			{"resourceClaims", list_of(claim)},
		});
		return object_of({{"apiVersion", text}, {"kind", text}, {"metadata", object_of({{"name", text}})}, {"spec", spec}});
	}();
	return *shape;
}

// ---- from YAML to what Kubernetes wants ----

struct Wrong {
	int line;
	std::string what;
};

[[noreturn]] void refuse(int line, const std::string &what)
{
	throw Wrong{line, what};
}

Json converted(const YamlNode &node, const Shape &shape, const std::string &path);

// The mode of a file: 292, or as people write it in YAML, 0444.
std::optional<std::int64_t> mode_of(const std::string &text)
{
	if (!text.starts_with('0') || text.size() > 4)
		return parse_integer(text, 0, 0777);
	std::int64_t out = 0;
	for (const char c : text) {
		if (c < '0' || c > '7')
			return std::nullopt;
		out = out * 8 + (c - '0');
	}
	return out;
}

Json scalar(const YamlNode &node, Kind kind, const std::string &path)
{
	if (!node.is_scalar() || node.is_null())
		refuse(node.line, path + " is no " + (kind == Kind::flag ? "true or false" : kind == Kind::mode ? "mode of a file" : "text"));
	if (kind == Kind::text)
		return Json::string(node.text);
	if (kind == Kind::mode) {
		const auto mode = mode_of(node.text);
		if (!mode)
			refuse(node.line, path + " is no mode of a file, 0000 to 0777");
		return Json::integer(*mode);
	}
	if (!node.plain || (node.text != "true" && node.text != "false"))
		refuse(node.line, path + " is neither true nor false");
	return Json::boolean(node.text == "true");
}

Json list(const YamlNode &node, const Shape &shape, const std::string &path)
{
	Json out = Json::array();
	if (!node.is_sequence())
		refuse(node.line, path + " is no list");
	for (std::size_t i = 0; i < node.items.size(); i++)
		out.append(converted(node.items[i], *shape.item, path + "[" + std::to_string(i) + "]"));
	return out;
}

// Of what people look for in a pod, and have by another way.
std::string instead_of(const std::string &field)
{
	if (field == "spec.serviceAccountName" || field == "spec.serviceAccount")
		return " is not taken from a template: give --k8s-service-account=NAME to the command that makes the job";
	return " is none of the fields that a template may have, see spank_k8s.so(8)";
}

Json object(const YamlNode &node, const Shape &shape, const std::string &path)
{
	Json out = Json::object();
	if (node.is_null())
		return out; // "emptyDir:"
	if (!node.is_mapping())
		refuse(node.line, (path.empty() ? "the template" : path) + " is no object");
	for (const YamlMember &m : node.members) {
		const std::string at = (path.empty() ? "" : path + ".") + one_line(m.key, 64);
		const auto known = std::ranges::find_if(shape.members, [&](const Member &k) { return m.key == k.key; });
		if (known == shape.members.end())
			refuse(m.line, at + instead_of(at));
		out.set(m.key, converted(m.value, *known->shape, at));
	}
	return out;
}

Json converted(const YamlNode &node, const Shape &shape, const std::string &path)
{
	switch (shape.kind) {
	case Kind::list:
		return list(node, shape, path);
	case Kind::object:
		return object(node, shape, path);
	default:
		return scalar(node, shape.kind, path);
	}
}

// ---- what of it is allowed ----

constexpr std::int64_t most_memory = std::int64_t{1} << 50; // bytes

// A name is told from others by the settings; so one that is none is no matter here, the API server refuses it.
class Reader {
public:
	Reader(const TemplateSettings &allowed, const TemplateUser &who) : allowed_(allowed), who_(who) {}

	PodTemplate read(const Json &pod);

private:
	[[noreturn]] static void no(const std::string &what) { refuse(0, what); }
	void check_name(const char *what, const char *setting, const std::vector<std::string> &patterns, std::string_view name) const;
	static void check_image(const std::string &where, std::string_view image);
	void volume(const Json &v);
	void host_path(const Json &v) const;
	void empty_dir(const std::string &name, const Json &of);
	Json mounts(const std::string &where, const Json &container, bool of_job) const;
	void no_mount_points(const std::string &where, const Json &mounts) const;
	Json environment(const std::string &where, const Json &env) const;
	void device_claim(const Json &c);
	Json device_claims(const std::string &where, const Json &container) const;
	void reference(const std::string &where, const Json &of) const;
	void job_container_of(const Json &container);
	Json other_container(const Json &container, bool init);
	void limits(const std::string &where, const Json &container, Json &out, bool lasts);

	const TemplateSettings &allowed_;
	const TemplateUser &who_;
	PodTemplate out_;
	std::set<std::string> containers_;
	std::set<std::string> volumes_, only_for_job_; // names
	std::set<std::string> device_claims_, claim_objects_; // the same
};

void Reader::check_name(const char *what, const char *setting, const std::vector<std::string> &patterns, std::string_view name) const
{
	if (const std::string why = not_taken(patterns, name, who_, std::string("reservations.templates.") + setting); !why.empty())
		no(std::string(what) + " " + one_line(name, 64) + why);
}

void Reader::check_image(const std::string &where, std::string_view image)
{
	if (const std::string why = bad_image(image); !why.empty())
		no("the image of " + where + " " + why);
}

// Absolute, and its parts say where it is and nothing else: ".." and "//" could lead out of what is allowed.
bool is_plain(std::string_view path)
{
	return path.size() > 1 && path.front() == '/' && std::ranges::none_of(split(path.substr(1), '/'), [](std::string_view part) {
		return part.empty() || part == "." || part == "..";
	});
}

void Reader::host_path(const Json &v) const
{
	const std::string path(v["path"].str()), type(v["type"].str());
	if (!is_plain(path))
		no("hostPath " + one_line(path, 128) + " is no plain absolute path");
	if (!type.empty() && type != "Directory" && type != "File")
		no("hostPath " + one_line(path, 128) + " has a type that makes files: leave it out");
	// Just these: what is below them the runtime would mount as root, past folders that are closed to the user, and through links.
	if (std::ranges::find(allowed_.host_paths, path) == allowed_.host_paths.end())
		no("hostPath " + one_line(path, 128) + " is not allowed; the administrator allows some by reservations.templates.hostPaths in "
		   "slurm-k8s.yaml, just as they stand there");
}

// What is written to a tmpfs stays in memory when its writer has ended, and then no container's limit holds it.
void Reader::empty_dir(const std::string &name, const Json &of)
{
	const std::string_view medium = of["medium"].str();
	if (medium.empty())
		return;
	if (medium != "Memory")
		no("volume " + one_line(name, 64) + " has a medium that is none, use Memory or none");
	const auto size = parse_whole(of["sizeLimit"].str());
	if (!size || *size <= 0 || *size > most_memory)
		no("volume " + one_line(name, 64) + " is in memory and needs a sizeLimit, for example 128Mi");
	out_.volume_bytes = std::min(out_.volume_bytes + *size, most_memory);
}

void Reader::volume(const Json &v)
{
	const std::string name(v["name"].str());
	if (name.empty() || name == pause_volume || name == account_volume || !volumes_.insert(name).second)
		no("a volume has no name, or one that is taken: " + one_line(name, 64));
	if (v.size() != 2)
		no("volume " + one_line(name, 64) + " needs exactly one of emptyDir, configMap, secret, persistentVolumeClaim, hostPath");
	if (v["emptyDir"].is_object())
		empty_dir(name, v["emptyDir"]);
	if (v["configMap"].is_object())
		check_name("ConfigMap", "configMaps", allowed_.config_maps, v["configMap"]["name"].str());
	if (v["secret"].is_object())
		check_name("Secret", "secrets", allowed_.secrets, v["secret"]["secretName"].str());
	if (v["persistentVolumeClaim"].is_object())
		check_name("PersistentVolumeClaim", "claims", allowed_.claims, v["persistentVolumeClaim"]["claimName"].str());
	if (v["hostPath"].is_object())
		host_path(v["hostPath"]);
	if (has_files_of_others(v))
		only_for_job_.insert(name);
	out_.volumes.append(v);
}

// Tasks enter the container as root: what its kernel shows of itself is the kernel's there, and nobody else's.
bool is_reserved(std::string_view path)
{
	for (const std::string_view top : {"/proc", "/sys", "/dev", "/.slurm-k8s"})
		if (path == top || is_below(path, top))
			return true;
	return false;
}

// What is mounted below another volume needs a folder there, which the runtime makes as root.
void Reader::no_mount_points(const std::string &where, const Json &mounts) const
{
	mounts.each_item([&](const Json &over) {
		const std::string folder(over["mountPath"].str());
		if (!only_for_job_.contains(std::string(over["name"].str())))
			return;
		if (folder == "/etc") // hosts, hostname, resolv.conf
			no(where + " mounts a claim or host path on /etc, where the kubelet puts files of its own");
		mounts.each_item([&](const Json &mount) {
			const std::string path(mount["mountPath"].str());
			if (is_below(path, folder))
				no(where + " mounts a volume on " + one_line(path, 128) + ", below the claim or host path on " + one_line(folder, 128) +
				   ": a folder would be made for it there, as root");
		});
	});
}

Json Reader::mounts(const std::string &where, const Json &container, bool of_job) const
{
	Json out = Json::array();
	container["volumeMounts"].each_item([&](const Json &mount) {
		const std::string name(mount["name"].str()), path(mount["mountPath"].str());
		if (!volumes_.contains(name))
			no(where + " mounts volume " + one_line(name, 64) + ", which is none of the template");
		if (!is_plain(path) || is_reserved(path))
			no(where + " mounts a volume on " + one_line(path, 128) + ", which is no plain absolute path, or the system's");
		// A runtime gives a container the groups that its image says its user has.
		if (!of_job && only_for_job_.contains(name))
			no(where + " mounts volume " + one_line(name, 64) + ": only the container \"job\" may have claims and host paths");
		if (only_for_job_.contains(name) && !mount["subPath"].str().empty()) // root opens it, whatever is closed above it
			no(where + " mounts a subPath of volume " + one_line(name, 64) + ": mount the whole claim or host path");
		out.append(mount);
	});
	no_mount_points(where, out);
	return out;
}

void Reader::reference(const std::string &where, const Json &of) const
{
	const Json map = of["configMapKeyRef"].is_object() ? of["configMapKeyRef"] : of["configMapRef"];
	const Json secret = of["secretKeyRef"].is_object() ? of["secretKeyRef"] : of["secretRef"];
	if (of.size() != 1)
		no(where + " needs one source for each of its env");
	if (map.is_object())
		check_name("ConfigMap", "configMaps", allowed_.config_maps, map["name"].str());
	if (secret.is_object())
		check_name("Secret", "secrets", allowed_.secrets, secret["name"].str());
}

Json Reader::environment(const std::string &where, const Json &env) const
{
	env.each_item([&](const Json &e) {
		if (e["valueFrom"].is_object())
			reference(where, e["valueFrom"]);
	});
	return env;
}

// How many devices the job is to have for it is known when the claim is, see job_claims.h.
void Reader::device_claim(const Json &c)
{
	const std::string name(c["name"].str()), claim(c["resourceClaimName"].str());
	if (name.empty() || !device_claims_.insert(name).second)
		no("a resource claim has no name, or one that is taken: " + one_line(name, 64));
	if (c.size() != 2)
		no("resource claim " + one_line(name, 64) + " needs exactly one of resourceClaimName, resourceClaimTemplateName");
	const bool of_template = !c["resourceClaimTemplateName"].is_null();
	check_name(of_template ? "ResourceClaimTemplate" : "ResourceClaim", "resourceClaims", allowed_.resource_claims,
		   of_template ? c["resourceClaimTemplateName"].str() : std::string_view(claim));
	if (!of_template && !claim_objects_.insert(claim).second)
		no("ResourceClaim " + one_line(claim, 64) + " is named twice");
	if (!of_template)
		out_.one_claim = claim;
	out_.device_claims.append(c);
}

Json Reader::device_claims(const std::string &where, const Json &container) const
{
	const Json claims = container["resources"]["claims"];
	claims.each_item([&](const Json &c) {
		if (!device_claims_.contains(std::string(c["name"].str())))
			no(where + " has claim " + one_line(c["name"].str(), 64) + ", which is none of the template's resourceClaims");
	});
	return claims;
}

void Reader::job_container_of(const Json &c)
{
	const Json resources = c["resources"], claims = device_claims("container job", c);
	const bool only_claims = resources.size() == 1 && claims.is_array();
	for (const char *key : {"command", "args", "workingDir", "env", "envFrom", "resources", "restartPolicy"})
		if (!c[key].is_null() && !(only_claims && key == std::string_view("resources")))
			no("container job has " + std::string(key) + ", but what runs there are the job's tasks: program, environment, folder "
			   "and resources are the job's");
	out_.image = c["image"].str();
	if (!out_.image.empty())
		check_image("container job", out_.image);
	out_.pull_policy = c["imagePullPolicy"];
	out_.job_mounts = mounts("container job", c, true);
	if (only_claims)
		out_.job_claims = claims;
}

// Its memory has a limit, or it could take all of the node's. lasts: it is there as long as the job runs.
void Reader::limits(const std::string &where, const Json &c, Json &out, bool lasts)
{
	const Json given = c["resources"]["limits"];
	const auto memory = parse_whole(given["memory"].str());
	const auto milli = given["cpu"].is_null() ? Result<std::int64_t>(0) : parse_milli(given["cpu"].str());
	if (!memory || *memory <= 0 || *memory > most_memory)
		no(where + " needs resources.limits.memory, for example 128Mi");
	if (!milli || *milli < 0 || *milli > kube::max_milli_cpu)
		no(where + " has a resources.limits.cpu that is none, use for example 500m");
	Json resources = Json::object().set("limits", given);
	if (const Json claims = device_claims(where, c); claims.size() > 0)
		resources.set("claims", claims);
	out.set("resources", resources);
	if (!lasts) {
		out_.first_memory_bytes = std::max(out_.first_memory_bytes, std::min(*memory, most_memory));
		return;
	}
	out_.milli_cpu += *milli; // there are less containers than bytes of text: no sum overflows
	out_.memory_bytes = std::min(out_.memory_bytes + *memory, most_memory);
}

Json Reader::other_container(const Json &c, bool init)
{
	const std::string where = "container " + one_line(c["name"].str(), 64);
	const std::string_view restart = c["restartPolicy"].str();
	if (!c["restartPolicy"].is_null() && (!init || restart != "Always"))
		no(where + " has a restartPolicy; only init containers may have one, Always, which makes them sidecars");
	check_image(where, c["image"].str());
	Json out = Json::object();
	for (const char *key : {"name", "image", "imagePullPolicy", "command", "args", "workingDir", "restartPolicy", "envFrom"})
		if (!c[key].is_null())
			out.set(key, c[key]);
	c["envFrom"].each_item([&](const Json &e) {
		Json source = Json::object();
		for (const char *key : {"configMapRef", "secretRef"})
			if (!e[key].is_null())
				source.set(key, e[key]);
		reference(where, source);
	});
	if (!c["env"].is_null())
		out.set("env", environment(where, c["env"]));
	limits(where, c, out, !init || restart == "Always");
	return out.set("securityContext", without_privileges()).set("volumeMounts", mounts(where, c, false));
}

PodTemplate Reader::read(const Json &pod)
{
	if (pod["apiVersion"].str() != "v1" || pod["kind"].str() != "Pod")
		no("it is no Pod: begin it with \"apiVersion: v1\" and \"kind: Pod\"");
	const Json spec = pod["spec"];
	spec["volumes"].each_item([&](const Json &v) { volume(v); });
	spec["imagePullSecrets"].each_item([&](const Json &s) {
		check_name("Secret", "secrets", allowed_.secrets, s["name"].str());
		out_.pull_secrets.append(s);
	});
	spec["resourceClaims"].each_item([&](const Json &c) { device_claim(c); });
	const auto add = [&](const Json &c, Json &to, bool init) {
		const std::string name(c["name"].str());
		if (name.empty() || !containers_.insert(name).second)
			no("a container has no name, or one that is taken: " + one_line(name, 64));
		if (name == job_container)
			return init ? no("an init container is called job; that is the name of the one in which tasks run") : job_container_of(c);
		to.append(other_container(c, init));
	};
	spec["initContainers"].each_item([&](const Json &c) { add(c, out_.init_containers, true); });
	spec["containers"].each_item([&](const Json &c) { add(c, out_.containers, false); });
	return std::move(out_);
}

} // namespace

Result<PodTemplate> read_pod_template(std::string_view text, const TemplateSettings &allowed, const TemplateUser &who)
{
	if (!allowed.allow)
		return Error{"is not allowed here; the administrator allows it by reservations.templates.allow in slurm-k8s.yaml"};
	if (text.size() > longest_template)
		return Error{"is longer than " + std::to_string(longest_template) + " bytes"};
	std::vector<YamlProblem> problems;
	const auto yaml = parse_yaml(text, problems);
	if (!yaml)
		return Error{"line " + std::to_string(problems.front().line) + ": " + problems.front().what};
	try {
		return Reader(allowed, who).read(object(*yaml, pod_shape(), ""));
	} catch (const Wrong &wrong) {
		return Error{(wrong.line ? "line " + std::to_string(wrong.line) + ": " : "") + wrong.what};
	}
}

bool has_files_of_others(const Json &volume)
{
	return volume["persistentVolumeClaim"].is_object() || volume["hostPath"].is_object();
}

bool is_below(std::string_view path, std::string_view folder)
{
	return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

// ---- names ----

static constexpr struct {
	std::string_view text;
	std::string TemplateUser::*by;
} marks[] = {{"{user}", &TemplateUser::user}, {account_mark, &TemplateUser::account}};

// What can separate two names in one of Kubernetes', which has letters, digits and these.
static constexpr std::string_view separators = "-.";

// What stands between {user} and {account}, whichever comes first; nothing: they are not both there.
static std::optional<std::string_view> between_marks(std::string_view pattern)
{
	const auto a = pattern.find(marks[0].text), b = pattern.find(marks[1].text);
	if (a == pattern.npos || b == pattern.npos)
		return std::nullopt;
	const auto end_of_first = a < b ? a + marks[0].text.size() : b + marks[1].text.size();
	return pattern.substr(end_of_first, std::max(a, b) - end_of_first);
}

// Would the same name also be made of another user and another account? Not if a separator between them is in neither: then
// every user and account of whom the name can be made has as many of it, none, so that it says where the one ends.
static bool is_ambiguous(std::string_view pattern, const TemplateUser &who)
{
	const auto between = between_marks(pattern);
	const auto in_neither = [&](char c) { return who.user.find(c) == std::string::npos && who.account.find(c) == std::string::npos; };
	return between && std::ranges::none_of(separators, [&](char c) { return between->find(c) != between->npos && in_neither(c); });
}

// Nothing: the job has no such name. What is put in is not read again: Slurm takes any text for an account's name.
static std::optional<std::string> filled(std::string_view pattern, const TemplateUser &who)
{
	std::string out;
	while (!pattern.empty()) {
		const auto mark = std::ranges::find_if(marks, [&](const auto &m) { return pattern.starts_with(m.text); });
		if (mark != std::end(marks) && (who.*mark->by).empty())
			return std::nullopt;
		out += mark == std::end(marks) ? std::string(1, pattern.front()) : who.*mark->by;
		pattern.remove_prefix(mark == std::end(marks) ? 1 : mark->text.size());
	}
	return out;
}

bool takes_name(const std::string &pattern, std::string_view name, const TemplateUser &who)
{
	if (name.empty())
		return false;
	const bool marked = std::ranges::any_of(marks, [&](const auto &m) { return pattern.find(m.text) != std::string::npos; });
	return marked ? filled(pattern, who) == name && !is_ambiguous(pattern, who) : glob_match(pattern, name);
}

std::string not_taken(const std::vector<std::string> &patterns, std::string_view name, const TemplateUser &who, const std::string &setting)
{
	if (std::ranges::any_of(patterns, [&](const std::string &p) { return takes_name(p, name, who); }))
		return "";
	const std::string for_whom = " is not allowed for user " + one_line(who.user, 64) + "; ";
	const auto doubtful = std::ranges::find_if(patterns, [&](const std::string &p) { return is_ambiguous(p, who) && filled(p, who) == name; });
	if (doubtful != patterns.end())
		return for_whom + "by " + one_line(*doubtful, 64) + " in " + setting + " it could be another user's and account's, as user " +
		       one_line(who.user, 64) + " or account " + one_line(who.account, 64) + " has in it what separates the two";
	return for_whom + "the administrator allows some by " + setting + " in slurm-k8s.yaml";
}

std::string bad_pattern(const std::string &pattern)
{
	const bool marked = pattern.find('{') != std::string::npos;
	std::string rest = pattern;
	for (const auto &m : marks)
		if (const auto at = rest.find(m.text); at != std::string::npos)
			rest.erase(at, m.text.size());
	if (pattern.empty() || rest.find_first_of("{}") != std::string::npos)
		return "is no name, use for example \"data-{user}\", \"{account}\" or \"public-*\"";
	if (marked && rest.find_first_of("*?") != std::string::npos) // what is a-b's would be a's
		return "has both a name in braces and a * or ?: user a could have what is user a-b's";
	if (const auto between = between_marks(pattern); between && between->find_first_of(separators) == between->npos)
		return "has no - or . between {user} and {account}: user a of account bc could have what is user ab's of account c";
	return "";
}

} // namespace sk8::core
