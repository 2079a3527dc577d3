// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/dra_selector.h"

#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::core;

namespace {

kube::Device device()
{
	kube::Device d;
	d.name = "gpu-0";
	d.attributes = {
		{"gpu.example.com/index", std::int64_t{3}},	   {"gpu.example.com/model", std::string("NVIDIA A100")},
		{"gpu.example.com/ecc", true},			   {"gpu.example.com/driverVersion", kube::Version{"550.54.15"}},
		{"resource.kubernetes.io/pcieRoot", std::string("pci0000:01")}, {"gpu.example.com/beta", kube::Version{"1.0.0-rc.2"}},
	};
	d.capacity = {{"gpu.example.com/memory", std::int64_t{40} * 1024 * 1024 * 1024 * 1000}};
	return d;
}

// "true", "false", "error: ..." or "refused: ..."
std::string outcome(const std::string &text)
{
	const auto selector = DeviceSelector::parse(text);
	if (!selector)
		return "refused: " + selector.error().message;
	const auto matches = selector->matches("gpu.example.com", device());
	return !matches ? "error: " + matches.error().message : *matches ? "true" : "false";
}

} // namespace

TEST_CASE("selectors say of a device what they say in Kubernetes")
{
	struct Row {
		const char *text, *outcome;
	};
	// What kube-scheduler v1.35.4 (k8s.io/dynamic-resource-allocation/cel) says of each.
	static constexpr Row rows[] = {
		{"device.driver == 'gpu.example.com'", "true"},
		{"device.driver == \"gpu.example.com\" && device.attributes[\"gpu.example.com\"].index == 3", "true"},
		{"device.driver != 'gpu.example.com'", "false"},
		{"device.attributes['gpu.example.com'].index < 4 && device.attributes['gpu.example.com'].index >= 3", "true"},
		{"device.attributes['gpu.example.com'].index > 3 || device.attributes['gpu.example.com'].index <= 2", "false"},
		{"device.attributes['gpu.example.com'].index in [1, 3]", "true"},
		{"device.attributes['gpu.example.com'].index in []", "false"},
		{"device.attributes['gpu.example.com'].index == -3", "false"},
		{"-device.attributes['gpu.example.com'].index == -3", "true"},
		{"device.attributes['gpu.example.com']['model'] == 'NVIDIA A100'", "true"},
		{"device.attributes['gpu.example.com'].model.contains('A100')", "true"},
		{"device.attributes['gpu.example.com'].model.lowerAscii().startsWith('nvidia a')", "true"},
		{"device.attributes['gpu.example.com'].model.upperAscii().endsWith('100')", "true"},
		{"device.attributes['gpu.example.com'].model.size() == 11 && size('abc') == 3", "true"},
		{"size('\xc3\xa4') == 1", "true"},
		{"device.attributes['gpu.example.com'].model < 'O'", "true"},
		{"device.attributes['gpu.example.com'].ecc", "true"},
		{"!device.attributes['gpu.example.com'].ecc", "false"},
		{"device.attributes['gpu.example.com'].ecc == true ? true : false", "true"},
		{"device.attributes['resource.kubernetes.io'].pcieRoot == 'pci0000:01'", "true"},
		{"device.attributes['gpu.example.com'].driverVersion.compareTo(semver('550.54.2')) > 0", "true"},
		{"device.attributes['gpu.example.com'].driverVersion.isGreaterThan(semver('551.0.0'))", "false"},
		{"device.attributes['gpu.example.com'].driverVersion.isLessThan(semver('551.0.0-alpha'))", "true"},
		{"device.attributes['gpu.example.com'].driverVersion.major() == 550", "true"},
		{"device.attributes['gpu.example.com'].driverVersion == semver('550.54.15')", "true"},
		{"device.attributes['gpu.example.com'].beta.isLessThan(semver('1.0.0'))", "true"},
		{"device.attributes['gpu.example.com'].beta.isGreaterThan(semver('1.0.0-rc.1'))", "true"},
		{"device.attributes['gpu.example.com'].beta.isLessThan(semver('1.0.0-rc.10'))", "true"},
		{"device.capacity['gpu.example.com'].memory.compareTo(quantity('40Gi')) == 0", "true"},
		{"device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('39Gi'))", "true"},
		{"device.capacity['gpu.example.com'].memory == quantity('40960Mi')", "true"},
		{"quantity('1500m').isLessThan(quantity('2'))", "true"},
		{"has(device.attributes['gpu.example.com'].model)", "true"},
		{"has(device.attributes['gpu.example.com'].nothing)", "false"},
		{"has(device.attributes['nobody.io'].nothing)", "false"},
		{"'model' in device.attributes['gpu.example.com']", "true"},
		{"'nothing' in device.attributes['gpu.example.com']", "false"},
		{"'gpu.example.com' in device.attributes", "true"},
		{"'other.io' in device.attributes", "false"},
		{"'gpu.example' in device.attributes", "false"},
		{"'other.io' in device.capacity", "false"},
		{"has(device.attributes.other)", "true"},
		{"cel.bind(gpu, device.attributes['gpu.example.com'], gpu.ecc && gpu.index == 3)", "true"},
		{"cel.bind(a, 1, cel.bind(a, 2, a == 2))", "true"},
		{"r'a\\b' == 'a\\\\b' && \"it's\" == 'it\\'s'", "true"},
		{"1 == 1 && true || false", "true"},
		{"(true || false) && false", "false"},
		{"1 == '1'", "false"},
		{"[1, 2] == [1, 2]", "true"},
		{"device.allowMultipleAllocations", "false"},
		// what one side of && or || decides, the other need not
		{"device.driver == 'other.io' && device.attributes['other.io'].x == 1", "false"},
		{"device.attributes['other.io'].x == 1 && device.driver == 'other.io'", "false"},
		{"device.attributes['other.io'].x == 1 || true", "true"},
		{"device.attributes['other.io'].x == 1", "error: no such key: other.io/x"},
		{"device.attributes['other.io'].x == 1 || false", "error: no such key: other.io/x"},
		{"device.attributes['gpu.example.com'].model > 3", "error: no such overload"},
		{"device.attributes['gpu.example.com'].index", "error: no such overload"},
		{"semver('x').major() == 1", "error: semver() of what is none"},
	};
	for (const Row &row : rows) {
		INFO(row.text);
		CHECK(outcome(row.text) == row.outcome);
	}
}

TEST_CASE("what is no expression, or more than is understood, is refused by name")
{
	for (const char *text : {"", "device.driver ==", "device.driver == 'x", "(true", "true)", "[1, 2", "true true", "device..driver", "1 + 1 == 2",
				 "2 * 3 == 6", "device.attributes['x'].y.matches('a.*')", "[1].all(x, x > 0)", "[1].exists(x, x > 0)", "0x10 == 16",
				 "1.5 > 1.0", "1u == 1u", "'a' == '\\x41'", "\"\"\"x\"\"\" == 'x'", "has(device)", "foo(1)", "true ? false", "a.b(c",
				 "cel.bind(x)", "\x01", "99999999999999999999 == 1"}) {
		INFO(text);
		CHECK(outcome(text).starts_with("refused: "));
	}
	CHECK(outcome("device.attributes['x'].y.matches('a.*')") == "refused: matches() with so many arguments is not supported");
	CHECK(outcome("nobody == 1") == "error: undeclared reference to 'nobody'");
	CHECK(outcome("device.name == 'gpu-0'") == "error: undefined field 'name'");
}

TEST_CASE("no expression is too deep or too long for us")
{
	const auto many = [](const std::string &what, std::size_t n) {
		std::string out;
		for (std::size_t i = 0; i < n; i++)
			out += what;
		return out;
	};
	for (const char *sign : {"(", "!", "-", "[", "has(", "size("})
		CHECK(outcome(many(sign, 9000)).starts_with("refused: "));
	CHECK(outcome("device" + many(".a", 5000)).starts_with("refused: "));
	CHECK(outcome("device" + many("[0]", 3000)).starts_with("refused: "));
	CHECK(outcome(many("true ? true : ", 700) + "true").starts_with("refused: "));
	CHECK(outcome("true" + many("&&true", 1000)) == "true");
	CHECK(outcome("false" + many("||false", 1000)) == "false");
	CHECK(outcome(std::string(10 * 1024 + 1, ' ')).starts_with("refused: "));
	// a large value that is named again and again
	const std::string large = "cel.bind(x,\"" + many("a", 3400) + "\",cel.bind(l,[x" + many(",x", 1700) + "],size(l)>0" + many("&&size(l)>0", 100) + "))";
	CHECK(outcome(large) == "error: it costs too much");
	CHECK(outcome("cel.bind(x,\"" + many("a", 3400) + "\",size(x)==3400" + many("&&x==x", 10) + ")") == "true");
	// each cel.bind() would double the list
	std::string doubling = "true";
	for (int i = 15; i > 0; i--)
		doubling = "cel.bind(x" + std::to_string(i) + ", [x" + std::to_string(i - 1) + ", x" + std::to_string(i - 1) + "], " + doubling + ")";
	CHECK(outcome("cel.bind(x0, 1, " + doubling + ")") == "error: lists of lists are not supported");
}
