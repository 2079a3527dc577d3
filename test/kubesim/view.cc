// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/view.h"

#include "test/kubesim/table.h"

namespace kubesim {
namespace {

const std::pair<const char *, const char *> event_names[] = {
	{"regarding", "involvedObject"},
	{"note", "message"},
	{"deprecatedSource", "source"},
	{"deprecatedFirstTimestamp", "firstTimestamp"},
	{"deprecatedLastTimestamp", "lastTimestamp"},
	{"deprecatedCount", "count"},
	{"reportingController", "reportingComponent"},
};

J rename(const J &object, bool to_core)
{
	J out = J::object();
	object.each_member([&](const std::string &key, const J &value) {
		std::string name = key;
		for (const auto &[modern, core] : event_names)
			if (key == (to_core ? modern : core))
				name = to_core ? core : modern;
		out.set(name, value);
	});
	return out;
}

bool modern_event(const Kind &kind)
{
	return std::string_view(kind.group) == "events.k8s.io";
}

} // namespace

J event_to_core(const J &event)
{
	return rename(event, true);
}

J event_from_core(const J &event)
{
	return rename(event, false);
}

View::View(const Request &r) : kind_(*r.kind)
{
	// The first acceptable form wins, as in the real server.
	for (std::size_t from = 0; from < r.accept.size();) {
		std::size_t to = std::min(r.accept.find(',', from), r.accept.size());
		std::string range = r.accept.substr(from, to - from);
		from = to + 1;
		bool v1 = range.find("v=v1;") != range.npos || range.find("v=v1,") != range.npos ||
			  (range.size() > 4 && range.compare(range.size() - 4, 4, "v=v1") == 0);
		if (range.find("as=Table") != range.npos && v1)
			form_ = table;
		else if (range.find("as=PartialObjectMetadata") != range.npos && v1)
			form_ = partial;
		else if (range.find("as=") != range.npos || range.find("json") == range.npos)
			continue;
		break;
	}
	include_ = r.arg("includeObject", "Metadata");
}

J View::convert(const J &stored) const
{
	J o = modern_event(kind_) ? event_from_core(stored) : stored;
	J out = J::make("kind", kind_.kind, "apiVersion", kind_.api_version());
	o.each_member([&](const std::string &key, const J &value) { out.set(key, value); });
	return out;
}

static J metadata_only(const J &object)
{
	return J::make("kind", "PartialObjectMetadata", "apiVersion", "meta.k8s.io/v1", "metadata",
		       object["metadata"]);
}

std::string View::object(const Object &o) const
{
	return watch_object(o, true);
}

std::string View::watch_object(const Object &o, bool first) const
{
	if (form_ == table) {
		auto alias = std::make_shared<Object>(o);
		return table_of({alias}, J::make("resourceVersion", std::to_string(o.rv)), first).dump();
	}
	if (form_ == partial)
		return metadata_only(o.json()).dump();
	return modern_event(kind_) ? convert(o.json()).dump() : o.text(kind_);
}

J View::table_of(const std::vector<ObjectPtr> &objects, const J &list_meta, bool columns) const
{
	const TableFormat &format = table_format(stored_kind(kind_.storage));
	J rows = J::array();
	for (const auto &o : objects) {
		J object = o->json();
		J row = J::make("cells", format.cells(object));
		if (include_ == "Object")
			row.set("object", convert(object));
		else if (include_ == "Metadata")
			row.set("object", metadata_only(object));
		rows.append(row);
	}
	return J::make("kind", "Table", "apiVersion", "meta.k8s.io/v1", "metadata", list_meta, "columnDefinitions",
		       columns ? format.columns() : J::null(), "rows", rows);
}

std::string View::list(const std::vector<ObjectPtr> &objects, const J &list_meta) const
{
	if (form_ == table)
		return table_of(objects, list_meta, true).dump();
	std::string kind = form_ == partial ? "PartialObjectMetadataList" : kind_.list_kind();
	std::string version = form_ == partial ? "meta.k8s.io/v1" : kind_.api_version();
	std::string out = "{\"kind\":\"" + kind + "\",\"apiVersion\":\"" + version +
			  "\",\"metadata\":" + list_meta.dump() + ",\"items\":[";
	std::size_t size = out.size() + 4;
	for (const auto &o : objects)
		size += o->body.size() + 1;
	out.reserve(size);
	bool first = true;
	for (const auto &o : objects) {
		if (!first)
			out += ',';
		first = false;
		if (form_ == partial)
			out += metadata_only(o->json()).dump();
		else if (modern_event(kind_))
			out += event_from_core(o->json()).dump();
		else
			out += o->body;
	}
	return out += "]}";
}

std::string View::bookmark(std::uint64_t rv, bool initial_events_end) const
{
	J meta = J::make("resourceVersion", std::to_string(rv));
	if (initial_events_end)
		meta.set("annotations", J::make("k8s.io/initial-events-end", "true"));
	if (form_ == table) {
		J object = J::make("kind", "PartialObjectMetadata", "apiVersion", "meta.k8s.io/v1", "metadata", meta);
		J rows = J::array();
		rows.append(J::make("cells", J::array(), "object", object));
		return J::make("kind", "Table", "apiVersion", "meta.k8s.io/v1", "metadata",
			       J::make("resourceVersion", std::to_string(rv)), "columnDefinitions", J::null(),
			       "rows", rows)
			.dump();
	}
	J o = J::make("kind", kind_.kind, "apiVersion", kind_.api_version(), "metadata", meta);
	if (form_ == partial)
		o = metadata_only(o);
	return o.dump();
}

} // namespace kubesim
