/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding, opening and refusing plug-ins. A process loads plug-ins once, so every test that loads
 * does it in a child of its own; a failed check there is the child's exit code. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/run/kernels.h"
#include "engine/run/plugin.h"
#include "tests/lib/sample_plugin.h"
#include "tests/lib/unit.h"

/* In children: cmocka's assertions would jump into the parent's copy of the runner. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static char folder[256]; /* the test's RIDGE_PLUGIN_PATH */

static void in_child(void (*body)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        body();
        _exit(0);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended));
    assert_int_equal(WEXITSTATUS(ended), 0);
}

static int open_folder(void **state)
{
    (void)state;
    folder_with_sample("sample.so", folder, sizeof(folder));
    setenv("RIDGE_PLUGIN_PATH", folder, 1);
    unsetenv("RIDGE_SAMPLE");
    return 0;
}

static int close_folder(void **state)
{
    (void)state;
    folder_remove(folder);
    return 0;
}

static const struct plugin_info *info(const char *name)
{
    return plugin_info_find(name);
}

static const struct kernel *kernel(const char *name)
{
    for (int k = 0; k < plugin_kernel_count(); k++)
        if (strcmp(plugin_kernel_at(k)->name, name) == 0)
            return plugin_kernel_at(k);
    return NULL;
}

static void load_sample(void)
{
    plugins_load("sample");
    const struct plugin_info *sample = info("sample");
    CHECK(sample && sample->state == PLUGIN_LOADED);
    CHECK(strcmp(sample->version, "1.0") == 0);
    CHECK(strstr(sample->path, folder) == sample->path);
    CHECK(strcmp(plugin_version("sample"), "1.0") == 0);
    CHECK(plugin_kernel_count() == 1);
    CHECK(strcmp(plugin_kernel_at(0)->provider, "sample") == 0);
    CHECK(kernel("sample_relu") && kernel("sample_relu")->launch);
}

TEST(loads)
{
    in_child(load_sample);
}

static void list_kernels(void)
{
    int before = kernel_count();
    plugins_load("sample");
    CHECK(kernel_count() == before + 1);
    int at = -1;
    for (int k = 0; k < kernel_count(); k++)
        if (kernel_at(k) == plugin_kernel_at(0))
            at = k;
    CHECK(at == kernel_count() - 2); /* the reference stays last */
}

TEST(kernels_are_listed)
{
    in_child(list_kernels);
}

static void refuse_abi(void)
{
    char theirs[16], ours[16];
    snprintf(theirs, sizeof(theirs), "%d", PLUGIN_ABI + 1);
    snprintf(ours, sizeof(ours), "%d", PLUGIN_ABI);
    setenv("RIDGE_SAMPLE", "abi", 1);
    plugins_load("sample");
    CHECK(info("sample") && info("sample")->state == PLUGIN_REFUSED);
    CHECK(strstr(info("sample")->reason, theirs) && strstr(info("sample")->reason, ours));
    CHECK(plugin_kernel_count() == 0 && !plugin_version("sample"));
}

TEST(another_abi_is_refused)
{
    in_child(refuse_abi);
}

static void list_roofs(void)
{
    setenv("RIDGE_SAMPLE", "roof", 1);
    plugins_load("sample");
    CHECK(info("sample")->state == PLUGIN_LOADED && device_roof_count() == 1);
    CHECK(strcmp(device_roof_at(0)->name, "sleep f32") == 0 && device_roof_at(0)->run);
}

static void refuse_roof(void)
{
    setenv("RIDGE_SAMPLE", "roof,norun", 1);
    plugins_load("sample");
    CHECK(info("sample")->state == PLUGIN_REFUSED && device_roof_count() == 0);
    CHECK(strcmp(info("sample")->reason, "its roof sleep f32 lacks prepare, run or release") == 0);
}

/* What lies after the end of an older table is not looked at. */
static void leave_out_roof(void)
{
    setenv("RIDGE_SAMPLE", "roof,older", 1);
    plugins_load("sample");
    CHECK(info("sample")->state == PLUGIN_LOADED && device_roof_count() == 0);
    CHECK(kernel("sample_relu"));
}

TEST(roofs_are_taken_checked_and_optional)
{
    in_child(list_roofs);
    in_child(refuse_roof);
    in_child(leave_out_roof);
}

static void keep_reason(void)
{
    setenv("RIDGE_SAMPLE", "refuse", 1);
    plugins_load("sample");
    CHECK(info("sample")->state == PLUGIN_REFUSED);
    CHECK(strcmp(info("sample")->reason, "no sample device (looked for 1)") == 0);
}

TEST(its_reason_is_kept)
{
    in_child(keep_reason);
}

static void open_wanted_only(void)
{
    plugins_load("native,samples,sampl");
    CHECK(!info("sample") && plugin_kernel_count() == 0);
    plugins_load("native,sample");
    CHECK(info("sample") && info("sample")->state == PLUGIN_LOADED);
    int count = plugin_info_count();
    plugins_load("sample"); /* nothing is opened twice */
    CHECK(plugin_info_count() == count && plugin_kernel_count() == 1);
}

TEST(unwanted_are_not_opened)
{
    in_child(open_wanted_only);
}

static void report_broken(void)
{
    folder_add_file(folder, "broken.so", "not a shared object, but long enough to be read as one");
    folder_add_file(folder, "notes.txt", "not even called so");
    plugins_load("broken,notes");
    CHECK(info("broken") && info("broken")->state == PLUGIN_ABSENT);
    CHECK(strstr(info("broken")->reason, "broken.so"));
    CHECK(!info("notes"));
}

TEST(broken_files_have_a_reason)
{
    in_child(report_broken);
}

static void compare_names(void)
{
    char other[256];
    folder_with_sample("vendor.so", other, sizeof(other));
    setenv("RIDGE_PLUGIN_PATH", other, 1);
    plugins_load("vendor");
    CHECK(info("vendor") && info("vendor")->state == PLUGIN_REFUSED);
    CHECK(strstr(info("vendor")->reason, "\"sample\""));
    folder_remove(other);
}

TEST(the_file_must_bear_its_name)
{
    in_child(compare_names);
}

static void search_in_order(void)
{
    char later[256], path[600];
    folder_with_sample("sample.so", later, sizeof(later));
    snprintf(path, sizeof(path), "/nowhere/at/all::%s:%s", folder, later);
    setenv("RIDGE_PLUGIN_PATH", path, 1);
    plugins_load("sample");
    CHECK(info("/nowhere/at/all") && info("/nowhere/at/all")->state == PLUGIN_ABSENT);
    CHECK(strstr(info("sample")->path, folder) == info("sample")->path);
    CHECK(plugin_kernel_count() == 1);
    folder_remove(later);
}

TEST(the_first_folder_counts)
{
    in_child(search_in_order);
}

static void take_extra_kernels(void)
{
    setenv("RIDGE_SAMPLE", "slow,wrong", 1);
    plugins_load("sample");
    CHECK(plugin_kernel_count() == 3);
    CHECK(kernel("sample_slow") && kernel("sample_wrong") && !kernel("sample_hang"));
    CHECK(kernel("sample_slow")->distrusted && !kernel("sample_relu")->distrusted);
}

TEST(the_environment_reaches_it)
{
    in_child(take_extra_kernels);
}

const struct unit_fixture unit_fixture = {.before_each = open_folder, .after_each = close_folder};
