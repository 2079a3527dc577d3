// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "lib/kube/store.h"
#include "test/unit/catch.h"

using namespace sk8::kube;

namespace {

PodPtr make(const std::string &uid, const std::string &name, const std::string &node = "",
	    const std::string &version = "1")
{
	auto p = std::make_shared<Pod>();
	p->meta.uid = uid;
	p->meta.ns = "ns";
	p->meta.name = name;
	p->meta.resource_version = version;
	p->node_name = node;
	return p;
}

std::vector<std::string> on_node(const Store<Pod> &s, const std::string &node)
{
	std::vector<std::string> out;
	s.each_on_node(node, [&](const PodPtr &p) { out.push_back(p->meta.uid); });
	std::sort(out.begin(), out.end());
	return out;
}

} // namespace

TEST_CASE("an object is found by uid, by name and by node, and moves between nodes")
{
	Store<Pod> s;
	CHECK(s.upsert(make("u1", "a")) == nullptr);
	CHECK(on_node(s, "n1").empty());
	PodPtr before = s.upsert(make("u1", "a", "n1", "2"));
	REQUIRE(before);
	CHECK(before->node_name == "");
	s.upsert(make("u2", "b", "n1"));
	CHECK(on_node(s, "n1") == std::vector<std::string>{"u1", "u2"});
	CHECK(s.find_by_name("ns", "a")->meta.resource_version == "2");
	CHECK(s.find_by_name("other", "a") == nullptr);
	CHECK(s.erase("u1")->meta.name == "a");
	CHECK(s.erase("u1") == nullptr);
	CHECK(on_node(s, "n1") == std::vector<std::string>{"u2"});
	CHECK(s.find("u1") == nullptr);
	CHECK(s.size() == 1);
}

TEST_CASE("two generations of one name do not hide each other")
{
	Store<Pod> s;
	s.upsert(make("old", "a"));
	s.upsert(make("new", "a"));
	CHECK(s.find_by_name("ns", "a")->meta.uid == "new");
	s.erase("new");
	CHECK(s.find_by_name("ns", "a")->meta.uid == "old");
	s.upsert(make("newer", "a"));
	s.erase("old");
	CHECK(s.find_by_name("ns", "a")->meta.uid == "newer");
}

TEST_CASE("a complete list replaces what was there and tells the difference")
{
	Store<Pod> s;
	s.upsert(make("same", "a"));
	s.upsert(make("other", "b", "n1"));
	s.upsert(make("gone", "c", "n1"));
	auto d = s.replace({make("same", "a"), make("other", "b", "n2", "2"), make("new", "c")});
	REQUIRE(d.added.size() == 1);
	CHECK(d.added[0]->meta.uid == "new");
	REQUIRE(d.changed.size() == 1);
	CHECK(d.changed[0].first->node_name == "n1");
	CHECK(d.changed[0].second->node_name == "n2");
	REQUIRE(d.gone.size() == 1);
	CHECK(d.gone[0]->meta.uid == "gone");
	CHECK(s.size() == 3);
	CHECK(on_node(s, "n1").empty());
	CHECK(s.find_by_name("ns", "c")->meta.uid == "new");
}

TEST_CASE("nodes are indexed by their own name")
{
	Store<Node> s;
	auto n = std::make_shared<Node>();
	n->meta.uid = "u";
	n->meta.name = "n1";
	s.upsert(n);
	int seen = 0;
	s.each_on_node("n1", [&](const NodePtr &) { seen++; });
	CHECK(seen == 1);
}

TEST_CASE("after any sequence of changes the indexes say what a plain map says")
{
	std::mt19937 random(7);
	auto pick = [&](unsigned n) { return std::to_string(random() % n); };
	Store<Pod> s;
	std::map<std::string, PodPtr> model;
	for (int step = 0; step < 20000; step++) {
		std::string uid = pick(20);
		if (random() % 3 == 0) {
			REQUIRE((s.erase(uid) != nullptr) == (model.erase(uid) == 1));
		} else {
			PodPtr p = make(uid, "p" + uid, random() % 4 ? pick(4) : "");
			s.upsert(p);
			model[uid] = p;
		}
		for (int n = 0; n < 4; n++) {
			std::vector<std::string> want;
			for (const auto &[u, p] : model)
				if (p->node_name == std::to_string(n))
					want.push_back(u);
			std::sort(want.begin(), want.end());
			REQUIRE(on_node(s, std::to_string(n)) == want);
		}
		REQUIRE(s.size() == model.size());
	}
}
