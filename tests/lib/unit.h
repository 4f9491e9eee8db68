/* SPDX-License-Identifier: Apache-2.0
 *
 * Unit tests. A program is one file of tests/unit; the functions that TEST defines in it are found
 * through a section of the program and run in the order of the file by tests/lib/unit/main.c. Their
 * names are printed, and their assertions are cmocka's. */
#ifndef TESTS_LIB_UNIT_H
#define TESTS_LIB_UNIT_H

/* cmocka.h needs these four before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/registry.h"

enum { UNIT_RUN = -1, UNIT_SKIP = 77 }; /* the reason of a skip is printed first */

/* A sanitizer keeps memory and address space of its own: what is measured of them says nothing. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { UNIT_SANITIZED = 1 };
#else
enum { UNIT_SANITIZED = 0 };
#endif

struct unit_test {
    const char *name;
    CMUnitTestFunction run;
    int line;
};

/* TEST(name) { ... }: *state is what the fixture left there. */
#define TEST(test)                                                                                 \
    static void test(void **state);                                                                \
    static const struct unit_test test##_test = {#test, test, __LINE__};                           \
    static const struct unit_test *const test##_entry                                              \
        __attribute__((section("unit_tests"), used)) = &test##_test;                               \
    static void test(__attribute__((unused)) void **state)

/* MUST(exe_new, g, &options, &exe): a call whose last parameter is a struct error succeeds; else
 * the test fails with that error. */
#define MUST(function, ...)                                                                        \
    do {                                                                                           \
        struct error must_err = {0};                                                               \
        if (function(__VA_ARGS__, &must_err) != STATUS_OK)                                         \
            fail_msg("%s: %s", #function, must_err.message);                                       \
    } while (0)

/* FAILS(STATUS_FAILED, "no such file", store_open, path, mode, &store): it fails in this way, with
 * a message that says this. */
#define FAILS(wanted, says, function, ...)                                                         \
    do {                                                                                           \
        struct error fails_err = {0};                                                              \
        assert_int_equal(function(__VA_ARGS__, &fails_err), wanted);                               \
        if (!strstr(fails_err.message, says))                                                      \
            fail_msg("\"%s\" does not say \"%s\"", fails_err.message, says);                       \
    } while (0)

/* Calls release(copy of *object) when the test that runs has ended, however it ended, before
 * after_each: what a helper makes, tests need not release. */
void after_test(void (*release)(void *object), const void *object, size_t size);

/* What stands around the tests of a program, which may define it; each part may be left out. */
struct unit_fixture {
    /* Before anything else: UNIT_RUN, or the exit code with which the program ends at once. */
    int (*start)(int argc, char **argv);
    CMFixtureFunction before_all, after_all, before_each, after_each;
};
extern const struct unit_fixture unit_fixture __attribute__((weak));

#endif
