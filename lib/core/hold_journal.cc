// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/hold_journal.h"

#include <variant>

#include "lib/base/json.h"
#include "lib/base/text.h"

namespace sk8::core {

static constexpr std::size_t max_cores = 65536;
static constexpr std::size_t max_node = 255;

// ---- lines ----

static std::string journal_header(bool partial, bool first)
{
	Json line = Json::object();
	line.set("v", Json::integer(1));
	if (partial)
		line.set("partial", Json::boolean(true));
	if (partial && first)
		line.set("first", Json::boolean(true));
	return line.dump() + '\n';
}

std::string journal_line(const Hold &h)
{
	Json cores = Json::array();
	for (auto c : h.cores)
		cores.append(Json::integer(c));
	Json line = Json::object();
	line.set("hold", h.key.mark()).set("node", h.node).set("cores", cores);
	line.set("more", Json::integer(h.more_cores));
	line.set("mb", Json::integer(static_cast<std::int64_t>(h.memory_mb)));
	if (!h.gres.empty())
		line.set("gres", gres_to_json(h.gres));
	if (!h.shared.empty())
		line.set("shared", gres_to_json(h.shared));
	if (h.cpus)
		line.set("cpus", Json::integer(h.cpus));
	if (h.lost_node)
		line.set("lost_node", Json::boolean(true));
	if (h.foreign)
		line.set("foreign_mcpu", Json::integer(h.milli_cpu)).set("grace", Json::integer(h.grace_seconds));
	if (h.overhead)
		line.set("overhead", Json::boolean(true));
	return line.dump() + '\n';
}

std::string journal_line(const Released &r)
{
	Json line = Json::object();
	line.set("gone", r.key.mark()).set("by", r.by);
	if (r.foreign)
		line.set("foreign", Json::boolean(true));
	return line.dump() + '\n';
}

std::string journal_line(const PodKey &freed)
{
	return Json::object().set("free", freed.mark()).dump() + '\n';
}

std::string journal_line(const Resubmit &r)
{
	Json line = Json::object();
	line.set("resubmit", r.key.mark()).set("step", name(r.step));
	line.set("accrued", Json::integer(r.age.accrue_time)).set("priority", Json::integer(r.age.priority));
	if (r.unsure_since)
		line.set("unsure", Json::integer(r.unsure_since));
	if (!r.manifest.empty())
		line.set("manifest", r.manifest);
	return line.dump() + '\n';
}

std::string journal_line_resubmitted(const PodKey &key)
{
	return Json::object().set("resubmitted", key.mark()).dump() + '\n';
}

static std::optional<Hold> read_hold(const Json &line)
{
	Hold h;
	auto key = PodKey::from_mark(line["hold"].str());
	h.node = line["node"].str();
	const std::int64_t more = line["more"].integer_or(-1), mb = line["mb"].integer_or(-1);
	const std::int64_t milli = line["foreign_mcpu"].integer_or(line["foreign_mcpu"].is_null() ? 0 : -1);
	const std::int64_t grace = line["grace"].integer_or(line["grace"].is_null() ? h.grace_seconds : -1);
	const std::int64_t cpus = line["cpus"].integer_or(line["cpus"].is_null() ? 0 : -1);
	const Json cores = line["cores"];
	if (cpus < 0 || cpus > UINT32_MAX)
		return std::nullopt;
	if (!key || h.node.empty() || h.node.size() > max_node || more < 0 || more > UINT32_MAX || mb < 0 || milli < 0 ||
	    milli > kube::max_milli_cpu || grace < 0 || grace > kube::max_grace_seconds || !cores.is_array() || cores.size() > max_cores)
		return std::nullopt;
	for (std::size_t i = 0; i < cores.size(); i++) {
		const std::int64_t c = cores.at(i).integer_or(-1);
		if (c < 0 || c > UINT16_MAX)
			return std::nullopt;
		h.cores.push_back(static_cast<std::uint16_t>(c));
	}
	auto gres = gres_from_json(line["gres"]), shared = gres_from_json(line["shared"]);
	if (!gres || !shared)
		return std::nullopt;
	h.gres = std::move(*gres);
	h.shared = std::move(*shared);
	h.key = std::move(*key);
	h.more_cores = static_cast<std::uint32_t>(more);
	h.cpus = static_cast<std::uint32_t>(cpus);
	h.memory_mb = static_cast<std::uint64_t>(mb);
	h.lost_node = line["lost_node"].boolean_or(false);
	h.foreign = line["foreign_mcpu"].is_integer();
	h.milli_cpu = milli;
	h.overhead = line["overhead"].boolean_or(false);
	h.grace_seconds = grace;
	return h;
}

static std::optional<Released> read_released(const Json &line)
{
	auto key = PodKey::from_mark(line["gone"].str());
	const std::string by(line["by"].str());
	if (!key || by.empty() || by.size() > Released::max_by || !is_printable(by))
		return std::nullopt;
	return Released{std::move(*key), by, line["foreign"].boolean_or(false)};
}

static std::optional<Resubmit> read_resubmit(const Json &line)
{
	auto key = PodKey::from_mark(line["resubmit"].str());
	const std::int64_t accrued = line["accrued"].integer_or(-1), priority = line["priority"].integer_or(-1);
	const std::int64_t unsure = line["unsure"].integer_or(line["unsure"].is_null() ? 0 : -1);
	Resubmit r;
	if (!key || accrued < 0 || unsure < 0 || priority < 0 || priority > UINT32_MAX || !parse_step(line["step"].str(), r.step))
		return std::nullopt;
	r.manifest = line["manifest"].str();
	if (r.manifest.size() > Resubmit::max_manifest || r.manifest.empty() != (r.step != Resubmit::Step::kept))
		return std::nullopt;
	r.key = std::move(*key);
	r.age = {accrued, static_cast<std::uint32_t>(priority)};
	r.unsure_since = unsure;
	return r;
}

// The last line about a pod is what counts.
struct Known {
	std::unordered_map<std::string, std::variant<Hold, Released>> pods; // by mark
	std::unordered_map<std::string, Resubmit> resubmits;                // by mark
};

template <class Value, class Values>
static bool keep(std::optional<Value> value, Values &values)
{
	if (value)
		values[value->key.mark()] = std::move(*value);
	return value.has_value();
}

static bool apply_line(const Json &line, Known &known)
{
	if (line["hold"].is_string())
		return keep(read_hold(line), known.pods);
	if (line["gone"].is_string())
		return keep(read_released(line), known.pods);
	if (line["resubmit"].is_string())
		return keep(read_resubmit(line), known.resubmits);
	const bool resubmitted = line["resubmitted"].is_string();
	const std::string done(line[resubmitted ? "resubmitted" : "free"].str());
	if (!PodKey::from_mark(done))
		return false;
	if (resubmitted)
		known.resubmits.erase(done);
	else
		known.pods.erase(done);
	return true;
}

Result<Ledger> parse_journal(std::string_view text)
{
	Known known;
	Ledger out;
	std::size_t number = 0;
	while (!text.empty()) {
		const std::size_t end = text.find('\n');
		if (end == text.npos)
			break; // cut short by a crash: never acknowledged
		auto line = Json::parse(text.substr(0, end));
		text.remove_prefix(end + 1);
		number++;
		const bool good = line && (number == 1 ? (*line)["v"].integer_or(0) == 1 : apply_line(*line, known));
		if (!good)
			return Error{"line " + std::to_string(number) + " is damaged or of a newer version"};
		if (number == 1) {
			out.partial = (*line)["partial"].boolean_or(false);
			out.first = (*line)["first"].boolean_or(false);
		}
	}
	for (auto &[mark, line] : known.pods) {
		if (auto *h = std::get_if<Hold>(&line))
			out.holds.push_back(std::move(*h));
		else
			out.released.push_back(std::get<Released>(std::move(line)));
	}
	for (auto &[mark, r] : known.resubmits)
		out.resubmits.push_back(std::move(r));
	return out;
}

// ---- journal ----

// A pod may hold something and be about to be made again: these are two things.
static std::string resubmit_key(const PodKey &key)
{
	return "resubmit " + key.mark();
}

JournalText::JournalText(const Ledger &known) : header_(journal_header(known.partial, known.first))
{
	for (const Hold &h : known.holds)
		live_[h.key.mark()] = journal_line(h);
	for (const Released &r : known.released)
		live_[r.key.mark()] = journal_line(r);
	for (const Resubmit &r : known.resubmits)
		live_[resubmit_key(r.key)] = journal_line(r);
}

void JournalText::hold(const Hold &h)
{
	append(h.key.mark(), journal_line(h));
}

void JournalText::released(const Released &r)
{
	append(r.key.mark(), journal_line(r));
}

void JournalText::resubmit(const Resubmit &r)
{
	append(resubmit_key(r.key), journal_line(r));
}

// What is the last line about it is on disk, or will be with the next flush: each line more costs waiting for the disk.
void JournalText::append(std::string what, std::string line)
{
	std::string &last = live_[std::move(what)];
	if (last == line)
		return;
	pending_ += line;
	last = std::move(line);
}

void JournalText::free(const PodKey &key)
{
	live_.erase(key.mark());
	pending_ += journal_line(key);
}

void JournalText::forget_resubmit(const PodKey &key)
{
	live_.erase(resubmit_key(key));
	pending_ += journal_line_resubmitted(key);
}

void JournalText::complete()
{
	header_ = journal_header(false, false);
}

std::string JournalText::whole() const
{
	std::string text = header_;
	for (const auto &[mark, line] : live_)
		text += line;
	return text;
}

} // namespace sk8::core
