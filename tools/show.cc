// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "tools/show.h"

#include <algorithm>
#include <ctime>

#include "lib/base/text.h"

namespace sk8::tools {

std::string text_of(const Json &j, const char *key, const char *otherwise)
{
	const Json member = j[key];
	return one_line(member.str(otherwise), 512);
}

static std::int64_t number_of(const Json &j, const char *key)
{
	return j[key].integer_or(0);
}

static std::string when(std::int64_t seconds)
{
	const std::time_t t = seconds;
	std::tm local{};
	char text[32];
	if (seconds <= 0 || !::localtime_r(&t, &local) || !std::strftime(text, sizeof(text), "%F %T", &local))
		return "never";
	return text;
}

static std::string ago(std::int64_t seconds)
{
	if (seconds < 120)
		return std::to_string(std::max<std::int64_t>(seconds, 0)) + " s ago";
	if (seconds < 7200)
		return std::to_string(seconds / 60) + " min ago";
	return std::to_string(seconds / 3600) + " h ago";
}

std::string table(const std::vector<std::vector<std::string>> &rows, const std::string &indent)
{
	std::vector<std::size_t> width;
	for (const auto &row : rows)
		for (std::size_t i = 0; i < row.size(); i++) {
			width.resize(std::max(width.size(), i + 1));
			width[i] = std::max(width[i], row[i].size());
		}
	std::string out;
	for (const auto &row : rows) {
		out += indent;
		for (std::size_t i = 0; i < row.size(); i++) {
			out += row[i];
			if (i + 1 < row.size())
				out.append(width[i] - row[i].size() + 2, ' ');
		}
		out += '\n';
	}
	return out;
}

static std::string core_count(const Json &amounts)
{
	return std::to_string(static_cast<std::int64_t>(amounts["cores"].size()) + number_of(amounts, "more_cores"));
}

// "2.5 CPUs"
static std::string cpus(std::int64_t milli)
{
	std::string out = std::to_string(milli / 1000), rest = std::to_string(1000 + milli % 1000).substr(1);
	rest.erase(rest.find_last_not_of('0') + 1);
	return out + (rest.empty() ? "" : "." + rest) + " CPU" + (milli == 1000 ? "" : "s");
}

// What a mask hides: cores of pods for Slurm, and CPUs that make whole cores on their node.
static std::string hidden(const Json &mask, const char *unit = "")
{
	const std::int64_t foreign = number_of(mask, "foreign_milli_cpu");
	return core_count(mask) + unit + (foreign ? " + " + cpus(foreign) : "");
}

static std::string memory(const Json &amounts)
{
	const std::string gres = text_of(amounts, "gres", "");
	return std::to_string(number_of(amounts, "memory_mb")) + "M" + (gres.empty() ? "" : " " + gres);
}

// {"waiting": 3, "bound": 10} -> "3 waiting, 10 bound"
static std::string counts(const Json &numbers)
{
	std::string out;
	numbers.each_member([&](std::string_view state, const Json &n) {
		out += (out.empty() ? "" : ", ") + std::to_string(n.integer_or(0)) + " " + one_line(state, 32);
	});
	return out.empty() ? "none" : out;
}

static std::string job_of(const Json &pod)
{
	return number_of(pod, "job_id") ? std::to_string(number_of(pod, "job_id")) : "-";
}

static std::string name_of(const Json &pod)
{
	return text_of(pod, "namespace") + "/" + text_of(pod, "name");
}

// ---- parts ----

static std::string show_watches(const Json &cluster, std::int64_t now)
{
	std::vector<std::vector<std::string>> rows;
	cluster["watches"].each_item([&](const Json &w) {
		const std::int64_t heard = number_of(w, "heard");
		std::string row = text_of(w, "state") + " since " + when(number_of(w, "since"));
		row += heard ? ", last heard " + ago(now - heard) : ", nothing heard yet";
		if (w["error"].is_string())
			row += ": " + text_of(w, "error");
		rows.push_back({"watch of " + text_of(w, "what"), row});
	});
	return table(rows, "  ");
}

static std::string show_cluster(const Json &cluster, std::int64_t now)
{
	std::string out = "cluster " + text_of(cluster, "name") + ": " + text_of(cluster, "state");
	if (text_of(cluster, "state") == "hanging")
		return out + ", its engine has not answered; busy for " +
		       std::to_string(number_of(cluster, "busy_ms") / 1000) + " s\n";
	if (const std::int64_t since = number_of(cluster, "connected_since"))
		out += ", connected since " + when(since);
	if (cluster["server"].is_string())
		out += ", " + text_of(cluster, "server");
	out += '\n';
	if (cluster["error"].is_string())
		out += "  " + text_of(cluster, "error") + "\n";
	out += show_watches(cluster, now);
	cluster["missing_rights"].each_item([&](const Json &right) {
		out += "  missing right: " + one_line(right.str(), 128) + " (slurm-k8s check says what it is for)\n";
	});
	const Json summary = cluster["summary"];
	if (summary.is_object())
		out += table({{"pods", counts(summary["pods"])},
			      {"jobs", counts(summary["jobs"])},
			      {"held", std::to_string(number_of(summary, "held")) + " pods hold something, " +
					       std::to_string(number_of(summary, "masked")) + " of them as a mask"}},
			     "  ");
	if (const Json foreign = cluster["foreign_summary"]; number_of(foreign, "held"))
		out += table({{"foreign", std::to_string(number_of(foreign, "held")) + " pods of others are masked, " +
						  std::to_string(number_of(foreign, "unproved")) + " of them gone and " +
						  std::to_string(number_of(foreign, "lost")) + " lost"}},
			     "  ");
	return out;
}

// What a pod of others takes: cores that its kubelet keeps for it alone, and CPUs.
static std::string taken(const Json &pod)
{
	const std::int64_t milli = number_of(pod, "milli_cpu");
	if (!pod["cores"].size())
		return cpus(milli);
	std::string out;
	pod["cores"].each_item([&](const Json &core) { out += (out.empty() ? "core " : ",") + std::to_string(core.integer_or(-1)); });
	return out + (milli ? " + " + cpus(milli) : "");
}

static std::vector<std::string> foreign_row(const Json &pod)
{
	return {text_of(pod, "node"), name_of(pod), "foreign", "-", taken(pod), memory(pod),
		text_of(pod, "why", "")};
}

// Pods that keep something from Slurm without a running job, of all clusters.
static std::string show_masked_pods(const Json &status)
{
	std::vector<std::vector<std::string>> rows{{"NODE", "POD", "STATE", "JOB", "CORES", "MEMORY", "WHY"}};
	std::int64_t more = 0;
	status["clusters"].each_item([&](const Json &cluster) {
		more += number_of(cluster, "more_pods");
		cluster["pods"].each_item([&](const Json &pod) {
			const Json held = pod["holds"];
			if (held["masked"].boolean_or(false))
				rows.push_back({text_of(held, "node"), name_of(pod), text_of(pod, "pod"), job_of(pod),
						core_count(held), memory(held), text_of(pod, "why", "")});
		});
		more += number_of(cluster, "more_foreign");
		cluster["foreign"].each_item([&](const Json &pod) { rows.push_back(foreign_row(pod)); });
	});
	if (rows.size() == 1)
		return "";
	return "\npods that keep resources from Slurm's jobs\n" + table(rows, "  ") +
	       (more ? "  and " + std::to_string(more) + " more\n" : "");
}

static bool is_full(const Json &mask)
{
	return mask["full_for_pods"].boolean_or(false) || mask["full_for_jobs"].boolean_or(false);
}

// Why a node takes no job at all.
static std::string until_told(const Json &mask)
{
	const char *at_most = mask["for_a_moment"].boolean_or(false) ? ", or 5 s after slurmctld's start: the saved ledger lacks what came since"
			      : mask["for_a_while"].boolean_or(false)
				      ? ", or 30 s after slurmctld's start: no saved ledger says that there are pods"
				      : "";
	return std::string("until Kubernetes has told what runs there") + at_most;
}

static std::string show_masks(const Json &status)
{
	std::vector<std::vector<std::string>> rows{{"NODE", "CORES", "MEMORY"}};
	status["masks"].each_item([&](const Json &m) {
		if (m["whole"].boolean_or(false))
			rows.push_back({text_of(m, "node"), "all", until_told(m)});
		else
			rows.push_back({text_of(m, "node"), hidden(m), memory(m) + (is_full(m) ? ", and there is room for no more pods" : "")});
	});
	if (rows.size() == 1)
		return "masks: none\n";
	const std::int64_t left = number_of(status, "masked_nodes") - static_cast<std::int64_t>(rows.size()) + 1;
	return "masks (what jobs cannot get)\n" + table(rows, "  ") +
	       (left > 0 ? "  and " + std::to_string(left) + " more nodes\n" : "");
}

static std::string show_troubles(const Json &status)
{
	std::vector<std::vector<std::string>> rows;
	status["troubles"].each_item([&](const Json &t) {
		const std::int64_t times = number_of(t, "times");
		rows.push_back({when(number_of(t, "at")), text_of(t, "level"),
				text_of(t, "text") + (times > 1 ? " (" + std::to_string(times) + " times)" : "")});
	});
	return rows.empty() ? "last errors: none\n" : "last errors\n" + table(rows, "  ");
}

static std::string show_head(const Json &status)
{
	const Json config = status["configuration"];
	std::string out = "slurm-k8s " + text_of(status, "version") + " in slurmctld " + text_of(status, "slurm_version") +
			  " (pid " + std::to_string(number_of(status, "pid")) + ") of Slurm cluster " +
			  text_of(status, "slurm_cluster") + ": " + text_of(status, "state") + " since " +
			  when(number_of(status, "since")) + "\n";
	out += "configuration " + text_of(config, "file") + ", read " + when(number_of(config, "read_at"));
	const Json errors = config["errors"];
	out += errors.size() == 0 ? "\n" : ", is not used because of its mistakes:\n";
	errors.each_item([&](const Json &e) { out += "  " + one_line(e.str(), 512) + "\n"; });
	if (const std::string level = text_of(status, "debug"); level != "off")
		out += "debug flag: " + level + " (slurm-k8s debug off ends it)\n";
	return out;
}

// ---- all ----

std::string show_status(const Json &status)
{
	std::string out = show_head(status) + "\n";
	status["clusters"].each_item(
		[&](const Json &cluster) { out += show_cluster(cluster, number_of(status, "time")) + "\n"; });
	return out + show_masks(status) + show_masked_pods(status) + "\n" + show_troubles(status);
}

// Both sides' state of a node, of the cluster that shares it.
static std::string show_state(const Json &node)
{
	std::string out;
	if (const std::string slurm = text_of(node, "in_slurm", ""); !slurm.empty())
		out = "in Slurm: " + slurm + "\nin Kubernetes: " + text_of(node, "in_kubernetes") + "\n";
	if (const std::string features = text_of(node, "features", ""); !features.empty())
		out += "features by labels: " + features + "\n";
	if (const std::string over = text_of(node, "overcommitted", ""); !over.empty())
		out += "overcommitted, pods and Slurm's jobs together have more than there is: " + over + "\n";
	if (const std::string missing = text_of(node, "missing", ""); !missing.empty())
		out += "its kubelet has less than Slurm, devices are gone or not well, and no job gets so many: " + missing + "\n";
	node["exclusive"].each_item([&](const Json &what) { out += "exclusive: " + one_line(what.str(), 512) + "\n"; });
	node["other_devices"].each_item([&](const Json &what) { out += "other devices: " + one_line(what.str(), 512) + "\n"; });
	if (const std::string trouble = text_of(node, "trouble", ""); !trouble.empty())
		out += "tried again: " + trouble + "\n";
	return out;
}

std::string show_node(const Json &status, const std::string &node)
{
	std::vector<std::vector<std::string>> rows{
		{"POD", "STATE", "JOB", "CORES", "MEMORY", "COUNTED BY", "WHY"}};
	std::string state, out, hanging;
	status["masks"].each_item([&](const Json &m) {
		if (text_of(m, "node") == node && m["whole"].boolean_or(false))
			out = "node " + node + " takes no job " + until_told(m) + "\n";
		else if (text_of(m, "node") == node)
			out = "masked on node " + node + ": " + hidden(m, " cores") + ", " + memory(m) + "\n" +
			      (is_full(m) ? "node " + node + " has all the pods that it can have: no job starts there that needs one more\n" : "");
	});
	status["clusters"].each_item([&](const Json &cluster) {
		if (text_of(cluster, "state") == "hanging")
			hanging += "the engine of cluster " + text_of(cluster, "name") + " does not answer\n";
		state += show_state(cluster["node"]);
		cluster["pods"].each_item([&](const Json &pod) {
			const Json held = pod["holds"];
			const bool holds = held.is_object(), masked = held["masked"].boolean_or(false);
			rows.push_back({name_of(pod), text_of(pod, "pod"), job_of(pod), holds ? core_count(held) : "-",
					holds ? memory(held) : "-", !holds ? "nothing yet" : masked ? "a mask" : "its job",
					text_of(pod, "why", "")});
		});
		cluster["foreign"].each_item([&](const Json &pod) {
			std::vector<std::string> row = foreign_row(pod);
			row.erase(row.begin()); // the node
			row.insert(row.end() - 1, "a mask");
			rows.push_back(row);
		});
	});
	if (out.empty())
		out = "nothing is masked on node " + node + "\n";
	return state + out + (rows.size() == 1 ? "no pod that is known is on node " + node + "\n" : table(rows)) + hanging;
}

static std::string show_pod_of(const Json &pod, const std::string &cluster)
{
	std::string job = text_of(pod, "job");
	if (number_of(pod, "job_id"))
		job += ", job " + job_of(pod);
	if (pod["job_reason"].is_string())
		job += " (" + text_of(pod, "job_reason") + ")";
	std::vector<std::vector<std::string>> rows{
		{"pod", name_of(pod) + " (" + text_of(pod, "uid") + ") of cluster " + cluster},
		{"pod state", text_of(pod, "pod") + (pod["phase"].is_string() ? ", phase " + text_of(pod, "phase") : "") +
				      (pod["deleting"].boolean_or(false) ? ", being deleted" : "")},
		{"job state", job},
		{"next", text_of(pod, "next")},
	};
	auto add = [&](const char *title, const char *key) {
		if (pod[key].is_string())
			rows.push_back({title, text_of(pod, key)});
	};
	add("waits for", "doing");
	add("node", "node");
	if (const Json held = pod["holds"]; held.is_object())
		rows.push_back({"holds", core_count(held) + " cores and " + memory(held) + " on node " + text_of(held, "node") +
						 (held["masked"].boolean_or(false) ? ", as a mask" : ", counted by its job")});
	add("because", "why");
	add("refused", "refusal");
	add("trouble", "trouble");
	if (number_of(pod, "failures"))
		rows.push_back({"failed", std::to_string(number_of(pod, "failures")) + " times in a row, next try in " +
						  std::to_string(number_of(pod, "retry_in_ms") / 1000) + " s"});
	return table(rows);
}

std::string show_pod(const Json &status)
{
	std::string out;
	status["clusters"].each_item([&](const Json &cluster) {
		if (text_of(cluster, "state") == "hanging")
			out += "the engine of cluster " + text_of(cluster, "name") + " does not answer\n";
		cluster["pods"].each_item([&](const Json &pod) {
			out += (out.empty() ? "" : "\n") + show_pod_of(pod, text_of(cluster, "name"));
		});
	});
	return out;
}

} // namespace sk8::tools
