/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "tests/lib/unit.h"

/* The linker knows where the section begins and ends. */
extern const struct unit_test *const __start_unit_tests[], *const __stop_unit_tests[];

static int by_line(const void *a, const void *b)
{
    return (*(const struct unit_test *const *)a)->line -
           (*(const struct unit_test *const *)b)->line;
}

struct later {
    void (*release)(void *object);
    struct later *before;
    max_align_t object[];
};

/* What after_test was told during the test that runs, the last first. */
static struct later *later;

void after_test(void (*release)(void *object), const void *object, size_t size)
{
    struct later *new = malloc(sizeof(*new) + size);
    assert_non_null(new);
    *new = (struct later){release, later};
    memcpy(new->object, object, size);
    later = new;
}

static int end_test(void **state)
{
    while (later) {
        struct later *last = later;
        later = last->before;
        last->release(last->object);
        free(last);
    }
    return &unit_fixture && unit_fixture.after_each ? unit_fixture.after_each(state) : 0;
}

static int run_all(const struct unit_fixture *around)
{
    /* cppcheck-suppress comparePointers ; both are of one section */
    const size_t count = (size_t)(__stop_unit_tests - __start_unit_tests);
    const struct unit_test **tests = calloc(count, sizeof(*tests));
    struct CMUnitTest *cases = calloc(count, sizeof(*cases));
    int failed = 1;
    if (tests && cases) {
        for (size_t k = 0; k < count; k++)
            tests[k] = __start_unit_tests[k];
        qsort(tests, count, sizeof(*tests), by_line);
        for (size_t k = 0; k < count; k++)
            cases[k] = (struct CMUnitTest){tests[k]->name, tests[k]->run, around->before_each,
                                           end_test, NULL};
        failed =
            _cmocka_run_group_tests("tests", cases, count, around->before_all, around->after_all);
    }
    free(tests);
    free(cases);
    return failed;
}

int main(int argc, char **argv)
{
    static const struct unit_fixture none = {.start = NULL};
    const struct unit_fixture *around = &unit_fixture ? &unit_fixture : &none;
    int code = around->start ? around->start(argc, argv) : UNIT_RUN;
    return code == UNIT_RUN ? run_all(around) : code;
}
