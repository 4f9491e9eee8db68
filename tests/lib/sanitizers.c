/* SPDX-License-Identifier: Apache-2.0
 *
 * Defaults of the sanitizers for every test program; plain builds never call these functions.
 * Memory that nobody has is refused, as elsewhere, instead of ending the test that asks for it. A
 * plug-in brings OpenMP threads that outlive the tests, and reading the thread-local memory of a
 * library opened at run time crashes LeakSanitizer of gcc 12 then: it has to go without. What only
 * thread-local memory points to would count as lost: the text of dlerror, the pools of libgomp. */

/* Objects hide their functions unless told otherwise. */
#define FOUND_BY_LIBRARY __attribute__((visibility("default")))
FOUND_BY_LIBRARY const char *__asan_default_options(void);
FOUND_BY_LIBRARY const char *__lsan_default_options(void);
FOUND_BY_LIBRARY const char *__lsan_default_suppressions(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__lsan_default_options(void)
{
    return "use_tls=0:print_suppressions=0";
}

const char *__lsan_default_suppressions(void)
{
    return "leak:_dlerror_run\nleak:_dl_map_object_deps\nleak:_dl_exception_create\nleak:libgomp\n";
}
