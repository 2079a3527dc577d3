// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Lists of nodes as we write them, read by Slurm itself.
#include <cstdlib>
#include <dlfcn.h>

#include "lib/base/node_list.h"
#include "test/unit/base/node_names.h"
#include "test/unit/catch.h"

using namespace sk8;

namespace {

// Its types have other names in each release, and are pointers in all.
class Libslurm {
public:
	Libslurm()
	{
		void *library = dlopen("libslurm.so", RTLD_NOW | RTLD_LOCAL);
		if (!library)
			return;
		get(library, create_, "slurm_hostlist_create");
		get(library, shift_, "slurm_hostlist_shift");
		get(library, destroy_, "slurm_hostlist_destroy");
	}
	bool is_there() const { return create_ && shift_ && destroy_; }
	std::multiset<std::string> names(const std::string &list) const
	{
		std::multiset<std::string> out;
		void *all = create_(list.c_str());
		while (char *name = all ? shift_(all) : nullptr) {
			out.insert(name);
			std::free(name);
		}
		if (all)
			destroy_(all);
		return out;
	}

private:
	template <class F> static void get(void *library, F &f, const char *name)
	{
		f = reinterpret_cast<F>(dlsym(library, name));
	}
	void *(*create_)(const char *) = nullptr;
	char *(*shift_)(void *) = nullptr;
	void (*destroy_)(void *) = nullptr;
};

} // namespace

TEST_CASE("Slurm reads the nodes from a list that were written into it, each once")
{
	const Libslurm slurm;
	if (!slurm.is_there()) {
		WARN("there is no libslurm.so on this machine");
		return;
	}
	for (unsigned seed = 1; seed <= 500; seed++) {
		const auto names = test::some_nodes(seed);
		const std::string list = compress_nodes(names);
		INFO("seed " << seed << ": " << list);
		REQUIRE(slurm.names(list) == std::multiset<std::string>(names.begin(), names.end()));
	}
	std::set<std::string> many;
	for (int n = 1; n <= 70'000; n++)
		many.insert("n" + std::to_string(n));
	CHECK(slurm.names(compress_nodes(many)).size() == many.size());
}
