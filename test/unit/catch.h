// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Catch2, version 3 or 2: tests use what both have (TEST_CASE, SECTION, CHECK,
// REQUIRE, INFO, CAPTURE, GENERATE).
#ifndef SK8_TEST_UNIT_CATCH_H
#define SK8_TEST_UNIT_CATCH_H

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#define SK8_CATCH_VERSION 3
#else
#include <catch2/catch.hpp>
#define SK8_CATCH_VERSION 2
#endif

#endif
