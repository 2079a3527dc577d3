// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Kubernetes' side of slurm-k8s check, with the engine's own client and credentials.
#include "tools/check.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <span>

#include "lib/base/text.h"
#include "lib/core/dra_inventory.h"
#include "lib/core/foreign_pod.h"
#include "lib/core/job_request.h"
#include "lib/core/mask_index.h"
#include "lib/core/node_features.h"
#include "lib/core/placement.h"
#include "lib/core/pod_devices.h"
#include "lib/core/rights.h"
#include "lib/core/shared_nodes.h"
#include "lib/kube/client.h"
#include "lib/kube/kubeconfig.h"

namespace sk8::tools {

static constexpr std::int64_t most_skew = 5; // seconds; the Date header has whole ones
static constexpr int oldest_minor = 24;
static constexpr std::size_t most_named = 10; // nodes in one sentence

namespace {

// The asynchronous client as one that blocks.
class Asker {
public:
	explicit Asker(const kube::ClusterAccess &access)
		: loop_(clock_), client_(loop_, access, {.timeout = Millis(10'000), .connect_timeout = Millis(5'000)})
	{
	}

	kube::Reply get(const std::string &path)
	{
		kube::Reply out;
		bool done = false;
		client_.get(path, [&](kube::Reply r) {
			out = std::move(r);
			done = true;
		});
		wait([&] { return done; });
		return out;
	}

	// All at once; the answers in the order of the bodies.
	std::vector<kube::Reply> create(const std::string &path, const std::vector<Json> &bodies)
	{
		std::vector<kube::Reply> out(bodies.size());
		std::size_t missing = bodies.size();
		for (std::size_t i = 0; i < bodies.size(); i++)
			client_.create(path, bodies[i], [&, i](kube::Reply r) {
				out[i] = std::move(r);
				missing--;
			});
		wait([&] { return missing == 0; });
		return out;
	}

	struct Devices {
		std::vector<kube::DeviceClassPtr> classes;
		std::vector<kube::ResourceSlicePtr> slices;
	};
	Result<Devices> devices()
	{
		Devices out;
		auto classes = list(kube::device_classes_resource, [&](const Json &object) {
			if (auto c = kube::decode_device_class(object))
				out.classes.push_back(std::move(*c));
		});
		if (!classes)
			return classes.error();
		auto slices = list(kube::resource_slices_resource, [&](const Json &object) {
			if (auto s = kube::decode_resource_slice(object))
				out.slices.push_back(std::move(*s));
		});
		return slices ? Result<Devices>(std::move(out)) : slices.error();
	}

	Result<std::vector<kube::NodePtr>> nodes()
	{
		std::vector<kube::NodePtr> out;
		auto done = list(kube::nodes_resource, [&](const Json &object) {
			if (auto node = kube::decode_node(object))
				out.push_back(std::move(*node));
		});
		if (!done)
			return done.error();
		return out;
	}

	// What pods request that belong to their node, by node. Of the others nothing is kept but what each() keeps.
	Result<std::map<std::string, core::Allocatable>> own_requests(const std::function<void(const core::ForeignPod &)> &each)
	{
		std::map<std::string, core::Allocatable> out;
		auto done = list(kube::pods_resource, [&](const Json &object) {
			auto pod = core::decode_foreign_pod(object);
			if (pod)
				each(**pod);
			if (!pod || !(*pod)->overhead || (*pod)->over || (*pod)->node_name.empty())
				return;
			out[(*pod)->node_name].milli_cpu += (*pod)->milli_cpu;
			out[(*pod)->node_name].memory_mb += core::whole_mib((*pod)->memory_bytes);
		});
		if (!done)
			return done.error();
		return out;
	}

private:
	Result<void> list(const kube::ResourceType &type, const std::function<void(const Json &)> &each)
	{
		kube::Reply reply;
		bool done = false;
		client_.list(
			kube::resource_path(type), {},
			[&](std::string_view item) {
				if (auto object = Json::parse(item))
					each(*object);
			},
			[&](kube::Reply r) {
				reply = std::move(r);
				done = true;
			});
		wait([&] { return done; });
		if (!reply.ok())
			return Error{reply.error};
		return {};
	}

	// The client's own limits of time end each call.
	void wait(const std::function<bool()> &done)
	{
		while (!done())
			loop_.run_once(Millis(1'000));
	}

	SystemClock clock_;
	kube::HttpLoop loop_;
	kube::Client client_;
};

} // namespace

// ---- connection ----

static std::string hint(const std::string &error)
{
	if (error.find("certificate") != error.npos || error.find("SSL") != error.npos)
		return "; certificate-authority-data of the kubeconfig must be the CA of this very API server, and the name "
		       "in server: one of its certificate's";
	return "; is the API server up, and server: in the kubeconfig right?";
}

void check_clock(std::int64_t date, std::int64_t before, std::int64_t after, const std::string &about, Findings &out)
{
	const std::int64_t skew = date < before ? date - before : date > after ? date - after : 0;
	if (std::abs(skew) > most_skew)
		out.problem(about, "the API server's clock is " + std::to_string(std::abs(skew)) + " s " +
					   (skew > 0 ? "ahead of" : "behind") +
					   " this host's; run a time service (chrony) on both");
	else
		out.ok(about, "as this host's, to " + std::to_string(most_skew) + " s");
}

static bool check_connection(Asker &kube, const kube::ClusterAccess &access, const std::string &cluster, Findings &out)
{
	const std::string about = "cluster " + cluster;
	const SystemClock clock;
	const std::int64_t before = clock.wall_seconds();
	const kube::Reply r = kube.get("/version");
	const std::int64_t after = clock.wall_seconds();
	if (r.status == 0) {
		out.problem(about, r.error + hint(r.error));
		return false;
	}
	out.ok(about, "TLS connection to " + access.server);
	if (r.ok()) {
		const Json version = r.body["gitVersion"], minor = r.body["minor"];
		if (std::atoi(std::string(minor.str("0")).c_str()) < oldest_minor)
			out.warning(about, "Kubernetes " + std::string(version.str("of an unknown version")) +
						   " is older than what slurm-k8s was tried with");
		else
			out.ok(about, "Kubernetes " + std::string(version.str()));
	}
	if (r.date)
		check_clock(*r.date, before, after, "clock of " + cluster, out);
	return true;
}

// ---- rights ----

// ns: where; empty: everywhere.
static Json review(const core::Right &right, const std::string &ns = {})
{
	const auto slash = right.resource.find('/');
	Json attributes = Json::object();
	attributes.set("group", right.group).set("verb", right.verb);
	attributes.set("resource", right.resource.substr(0, slash));
	if (slash != right.resource.npos)
		attributes.set("subresource", right.resource.substr(slash + 1));
	if (!ns.empty())
		attributes.set("namespace", ns);
	Json body = Json::object();
	body.set("apiVersion", "authorization.k8s.io/v1").set("kind", "SelfSubjectAccessReview");
	return body.set("spec", Json::object().set("resourceAttributes", attributes));
}

// In the order of the rights.
static std::vector<kube::Reply> ask(Asker &kube, std::span<const core::Right> rights, const std::string &ns = {})
{
	static constexpr kube::ResourceType reviews{"authorization.k8s.io", "v1", "selfsubjectaccessreviews"};
	std::vector<Json> bodies;
	for (const core::Right &right : rights)
		bodies.push_back(review(right, ns));
	return kube.create(kube::resource_path(reviews), bodies);
}

static bool is_given(const kube::Reply &answer)
{
	return answer.ok() && answer.body["status"]["allowed"].boolean_or(false);
}

// where: " in namespace x", or empty.
static std::string missing(const core::Right &right, const std::string &where, const std::string &file)
{
	return "the verb " + std::string(right.verb) + " on " + std::string(right.resource) + where + " is missing, without it " + right.without +
	       "; kubectl apply -f " + file;
}

// False: the credentials are not accepted, there is nothing more to ask.
static bool check_rights(Asker &kube, const std::string &cluster, Findings &out)
{
	const auto answers = ask(kube, core::needed_rights);
	std::size_t given = 0;
	for (std::size_t i = 0; i < answers.size(); i++) {
		const core::Right &right = core::needed_rights[i];
		if (!answers[i].ok()) {
			out.problem("credentials of " + cluster, answers[i].error);
			return false;
		}
		if (is_given(answers[i]))
			given++;
		else
			out.problem("rights of " + cluster, missing(right, "", "kubernetes-rbac.yaml"));
	}
	out.ok("credentials of " + cluster, "accepted");
	if (given == answers.size())
		out.ok("rights of " + cluster, "all " + std::to_string(given) + " are given");
	return true;
}

// Those that a setting needs, everywhere.
static void check_more_rights(Asker &kube, std::span<const core::Right> rights, const std::string &file, const std::string &cluster, Findings &out)
{
	const auto answers = ask(kube, rights);
	for (std::size_t i = 0; i < answers.size(); i++)
		if (!is_given(answers[i]))
			out.problem("rights of " + cluster, missing(rights[i], "", file));
}

// resources[].deviceClass
static void check_devices(Asker &kube, const core::ClusterSettings &settings, core::DraInventory &inventory, Findings &out)
{
	if (!inventory.wanted())
		return;
	check_more_rights(kube, core::device_rights, "kubernetes-devices.yaml", settings.name, out);
	auto known = kube.devices();
	const std::string about = "devices of " + settings.name;
	if (!known)
		return out.problem(about, known.error().message + "; nothing starts without it: a deviceClass under resources needs Kubernetes 1.34");
	inventory.classes_replaced(known->classes);
	inventory.slices_replaced(known->slices);
	for (const auto &r : settings.resources)
		if (std::string why = r.device_class.empty() ? "" : inventory.class_problem(r.device_class); !why.empty())
			out.warning(about, why + ": no pod gets such devices, which resources names; install its driver, or take the entry out");
}

// ns: empty: in all.
static bool may_create_pods(Asker &kube, const std::string &ns)
{
	static constexpr core::Right right[] = {{"", "pods", "create", ""}};
	return is_given(ask(kube, right, ns).front());
}

// barePods: resubmit
static void check_resubmits(Asker &kube, const core::ClusterSettings &settings, Findings &out)
{
	const std::string about = "rights of " + settings.name;
	for (const auto &ns : settings.namespaces) {
		const bool pattern = ns.match.find_first_of("*?") != ns.match.npos;
		if (ns.bare_pods != core::NamespaceSettings::BarePods::resubmit || may_create_pods(kube, pattern ? "" : ns.match))
			continue;
		if (pattern)
			out.warning(about, "barePods of namespaces " + ns.match + " is resubmit: make sure that each of them has the binding of "
					   "kubernetes-resubmit.yaml, else their pods are not made again");
		else
			out.problem(about, "the verb create on pods in namespace " + ns.match + " is missing, without it no pod is made again there "
					   "(barePods: resubmit); see kubernetes-resubmit.yaml");
	}
}

// For the pods of Slurm's own jobs.
static void check_reservations(Asker &kube, const core::ClusterSettings &settings, Findings &out)
{
	const std::string &ns = settings.reservations.ns;
	std::span<const core::Right> needed = core::reservation_rights;
	if (!settings.reservations.shared.max_cpus)
		needed = needed.first(needed.size() - 1);
	const auto answers = ask(kube, needed, ns);
	for (std::size_t i = 0; i < needed.size(); i++)
		if (!is_given(answers[i]))
			out.problem("rights of " + settings.name, missing(needed[i], " in namespace " + ns, "kubernetes-reservations.yaml"));
}

// Where nodes are dedicated, and nothing else needs pods, a site may well do without containers.
static void check_containers(Asker &kube, const core::ClusterSettings &settings, Findings &out)
{
	const std::string &ns = settings.reservations.ns;
	if (may_create_pods(kube, ns))
		return check_reservations(kube, settings, out);
	out.ok("rights of " + settings.name, "no job has a container (--k8s-image): for these the verb create on pods in namespace " + ns +
						      " is missing; see kubernetes-reservations.yaml");
}

// ---- nodes ----

std::string some(const std::vector<std::string> &names)
{
	std::vector<std::string> first(names.begin(), names.begin() + static_cast<long>(std::min(names.size(), most_named)));
	std::string text = join(first, ", ");
	return names.size() > most_named ? text + " and " + std::to_string(names.size() - most_named) + " more" : text;
}

static NodeRoom room_of(const kube::Node &node, const CheckedNode &slurm, const std::map<std::string, core::Allocatable> &own)
{
	NodeRoom out{.node = one_line(node.meta.name, 64),
		     .slurm = slurm,
		     .allocatable_milli_cpu = node.allocatable.milli_cpu,
		     .allocatable_mb = node.allocatable.memory_bytes >> 20};
	if (auto it = own.find(node.meta.name); it != own.end()) {
		out.own_milli_cpu = it->second.milli_cpu;
		out.own_mb = static_cast<std::int64_t>(it->second.memory_mb);
	}
	return out;
}

static constexpr std::size_t most_labels = 20;

// A group that has no node is most likely a label that was mistyped.
static void check_groups(const std::vector<kube::NodePtr> &nodes, const core::NodeSettings &settings, const std::string &about, Findings &out)
{
	const core::SharedNodes shared(settings);
	for (std::size_t i = 0; i < settings.groups.size(); i++) {
		const auto selector = core::parse_selector(settings.groups[i].selector);
		const bool used = selector && std::ranges::any_of(nodes, [&](const kube::NodePtr &node) {
			return shared.has(*node) && core::matches(*selector, *node);
		});
		if (!used)
			out.warning(about, "nodes.groups[" + std::to_string(i) + "] has no node: none that is shared has " +
						   one_line(settings.groups[i].selector, 128) + "; label its nodes with kubectl label node");
	}
}

// Nodes by the first one.
void check_labels(const std::vector<NodeLabels> &nodes, const std::string &about, Findings &out)
{
	std::map<std::string, std::vector<std::string>> where;
	for (const auto &[node, labels] : nodes)
		if (labels.left_out)
			where[labels.first_left_out].push_back(node);
	std::size_t told = 0;
	for (const auto &[first, names] : where)
		if (told++ < most_labels)
			out.warning(about, "not all labels of " + some(names) + " that nodes.features names are features: " + first);
}

static void check_nodes(Asker &kube, const core::ClusterSettings &settings, const SlurmSide &side, const core::DraInventory &inventory,
			SharedNames &shared_names, Findings &out)
{
	const std::string about = "nodes of " + settings.name;
	auto nodes = kube.nodes();
	auto selector = core::parse_selector(settings.nodes.selector);
	if (!nodes)
		return out.problem(about, nodes.error().message);
	if (!selector || !side.nodes_known)
		return; // told already
	Leftovers left;
	auto own = kube.own_requests([&](const core::ForeignPod &pod) { left.see(pod, settings.reservations.ns, side); });
	if (!own)
		return out.problem(about, own.error().message);
	std::vector<std::string> strangers;
	std::vector<NodeLabels> labels;
	std::vector<NodeRoom> rooms;
	std::vector<NodeDevices> devices;
	core::PodDevices plugins(settings.resources);
	std::size_t shared = 0, chosen = 0;
	for (const auto &node : *nodes) {
		left.see(*node, side);
		if (!core::matches(*selector, *node))
			continue;
		chosen++;
		auto it = side.nodes.find(node->meta.name);
		if (it == side.nodes.end()) {
			strangers.push_back(one_line(node->meta.name, 64));
			continue;
		}
		shared++;
		shared_names.nodes.insert(node->meta.name);
		labels.emplace_back(one_line(node->meta.name, 64), core::features_of(node->meta.labels, settings.nodes.features));
		rooms.push_back(room_of(*node, it->second, *own));
		devices.push_back({one_line(node->meta.name, 64),
				   core::identify_gres(core::node_devices(*node), node->meta.labels, settings.resources), it->second.gres,
				   core::SharedNodes(settings.nodes).sharing(*node) == core::Sharing::mixed});
		core::add_driver_gres(devices.back().kubernetes, node->meta.name, inventory, settings.resources);
		(void) plugins.read(*node);
		core::add_odd_indices(devices.back().kubernetes, plugins.problems(node->meta.name));
	}
	const std::string selected = settings.nodes.selector.empty() ? "" : " with " + settings.nodes.selector;
	if (chosen == 0)
		out.problem(about, "Kubernetes has no node" + selected + "; label the shared nodes: kubectl label node NODE " +
					   (settings.nodes.selector.empty() ? "..." : settings.nodes.selector));
	else if (shared == 0)
		out.problem(about, "no node has the same name on both sides; Kubernetes has " + some(strangers) +
					   ": NodeName in slurm.conf must be the Kubernetes name");
	else
		out.ok(about, std::to_string(shared) + " are on both sides");
	shared_names.unknown--;
	check_room(rooms, about, out);
	check_labels(labels, about, out);
	check_gres(devices, settings, "devices of " + settings.name, out);
	check_groups(*nodes, settings.nodes, about, out);
	check_leftovers(left, settings, out);
	if (shared && !strangers.empty())
		out.warning(about, "Slurm has no node of these names, which Kubernetes has" + selected + ": " + some(strangers));
	std::vector<std::string> unknown;
	for (const auto &name : settings.nodes.names)
		if (!side.nodes.contains(name))
			unknown.push_back(name);
	if (!unknown.empty())
		out.problem(about, "nodes.names in slurm-k8s.yaml: Slurm has no node " + some(unknown));
}

void check_cluster(const core::ClusterSettings &settings, const SlurmSide &side, SharedNames &shared, Findings &out)
{
	const std::string about = "cluster " + settings.name;
	shared.unknown++;
	auto access = settings.kubeconfig.empty()
			      ? kube::in_cluster_access()
			      : kube::load_kubeconfig(settings.kubeconfig, settings.context, side.slurm_uid);
	if (!access)
		return out.problem(about, access.error().message);
	kube::http_global_init();
	Asker kube(*access);
	if (!check_connection(kube, *access, settings.name, out) || !check_rights(kube, settings.name, out))
		return;
	if (settings.reserves())
		check_reservations(kube, settings, out);
	else if (settings.has_containers())
		check_containers(kube, settings, out);
	if (settings.nodes.exclusive.on())
		check_more_rights(kube, core::exclusive_rights, "kubernetes-rbac.yaml", settings.name, out);
	core::DraInventory inventory(settings.resources);
	check_devices(kube, settings, inventory, out);
	check_resubmits(kube, settings, out);
	check_nodes(kube, settings, side, inventory, shared, out);
}

} // namespace sk8::tools
