/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/registry.h"
#include "harness/suite/suite.h"
#include "harness/suite/suite_source.h"
#include "tests/lib/onnx_build.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/files.h"

enum { CPUS = 6 };

static enum status parse(const char *text, struct suite *suite, struct error *err)
{
    return suite_parse("s.toml", text, strlen(text), CPUS, suite, err);
}

static void good(const char *text, struct suite *suite)
{
    MUST(parse, text, suite);
}

static void bad(const char *text, const char *message)
{
    struct suite suite;
    struct error err = {.message = ""};
    assert_int_equal(parse(text, &suite, &err), STATUS_FAILED);
    if (strcmp(err.message, message) != 0)
        fail_msg("%s\n  says:  %s\n  needs: %s", text, err.message, message);
}

#define NCF    "[[workload]]\nname = \"ncf\"\n"
#define RESNET "[[workload]]\nname = \"resnet50\"\n"

static void integers_are(const struct suite_axis *axis, const char *text)
{
    char list[256] = "";
    size_t used = 0;
    for (int k = 0; k < axis->count && used < sizeof(list); k++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%lld", k ? " " : "",
                                 (long long)axis->values[k].integer);
    assert_string_equal(list, text);
}

TEST(lists_and_ranges_become_axes)
{
    static const char *const rows[][2] = {
        {"32", "32"},
        {"[1, 32]", "1 32"},
        {"[4, 4, 4]", "4"},
        {"{ from = 1, to = 64, times = 2 }", "1 2 4 8 16 32 64"},
        {"{ from = 1, to = 50, times = 3 }", "1 3 9 27 50"},
        {"{ from = 8, to = 30, plus = 8 }", "8 16 24 30"},
        {"{ from = 5, to = 5, plus = 1 }", "5"},
        {"{ from = 1, to = 1000000000, times = 1000000000 }", "1 1000000000"},
        {"{ from = 999999999, to = 1000000000, plus = 9223372036854775807 }",
         "999999999 1000000000"},
    };
    for (int k = 0; k < ARRAY_COUNT(rows); k++) {
        struct suite suite;
        char text[256];
        snprintf(text, sizeof(text), NCF "batch = %s\n", rows[k][0]);
        good(text, &suite);
        integers_are(&suite.entries[0].axes[KEY_BATCH], rows[k][1]);
        suite_release(&suite);
    }
}

TEST(all_is_every_cpu)
{
    struct suite suite;
    good("[defaults]\nthreads = [1, 6, \"all\"]\n" NCF
         "threads = { from = 1, to = \"all\", times = 2 }\n",
         &suite);
    integers_are(&suite.axes[KEY_THREADS], "1 6");
    integers_are(&suite.entries[0].axes[KEY_THREADS], "1 2 4 6");
    suite_release(&suite);
}

TEST(a_workload_takes_parameters_and_settings)
{
    struct suite suite;
    good("name = \"mine\"\n[defaults.stop]\ninterval = 0\n" RESNET
         "version = 1.5\nimage = [160, 224]\nstop = { seconds_max = 3 }\n"
         "profilers = [\"model\", \"null\"]\n[workload.server]\nlatency_bound_s = 0.5\n",
         &suite);
    const struct suite_entry *entry = &suite.entries[0];
    assert_string_equal(entry->workload->name, "resnet50");
    assert_string_equal(entry->origin, "s.toml:4");
    assert_string_equal(entry->params[0].values[0].text, "1.5");
    assert_string_equal(entry->params[0].origin, "s.toml:6");
    integers_are(&entry->params[1], "160 224");
    assert_true(entry->axes[KEY_SECONDS_MAX].values[0].number == 3);
    assert_true(entry->axes[KEY_LATENCY_BOUND].values[0].number == 0.5);
    assert_string_equal(entry->axes[KEY_PROFILERS].values[0].text, "model,null");
    assert_int_equal(entry->axes[KEY_PROFILERS].count, 1);
    assert_true(suite.axes[KEY_INTERVAL].values[0].number == 0);
    assert_int_equal(suite.axes[KEY_BATCH].count, 0);
    suite_release(&suite);
}

TEST(a_list_of_names_is_an_entry_each)
{
    struct suite suite;
    good("[[workload]]\nname = [\"bert_base\", \"bert_large\"]\ntokens = 128\n", &suite);
    assert_int_equal(suite.count, 2);
    assert_string_equal(suite.entries[1].workload->name, "bert_large");
    assert_int_equal(suite.entries[1].params[0].values[0].integer, 128);
    suite_release(&suite);
}

static const char *const mistakes[][2] = {
    {"", "s.toml: has no [[workload]]"},
    {"nmae = \"x\"\n", "s.toml:1: nmae: is no key here; did you mean \"name\"?"},
    {"zzzzzzzz = 1\n", "s.toml:1: zzzzzzzz: is no key here; `ridge help suite.toml` lists all"},
    {"\n[defalts]\n", "s.toml:2: defalts: is no key here; did you mean \"defaults\"?"},
    {"defaults = 3\n", "s.toml:1: defaults: is a table: [defaults]"},
    {"name = 3\n", "s.toml:1: name: needs a string, got an integer"},
    {"budget_s = \"long\"\n", "s.toml:1: budget_s: needs a number, got the string \"long\""},
    {"budget_s = -1\n", "s.toml:1: budget_s: -1 is not in 0 to 1000000"},
    {"budget_s = nan\n", "s.toml:1: budget_s: nan is not in 0 to 1000000"},
    {"[ceilings]\nmeasure = 1\n",
     "s.toml:2: ceilings.measure: needs true or false, got an integer"},
    {"[output]\ndb = [\"a\", \"b\"]\n", "s.toml:2: output.db: takes one value, not a list"},
    {"[defaults]\nname = \"ncf\"\n",
     "s.toml:2: defaults.name: is no key here; `ridge help suite.toml` lists all"},
    {"[defaults]\nbatch = []\n", "s.toml:2: defaults.batch: the list is empty"},
    {"[defaults]\nbatch = [1, true]\n",
     "s.toml:2: defaults.batch: needs an integer, got a boolean"},
    {"[defaults]\nbatch = 1.5\n", "s.toml:2: defaults.batch: needs an integer, got a real number"},
    {"[defaults]\nbatch = 2024-01-01\n",
     "s.toml:2: defaults.batch: needs an integer, got a date or a time"},
    {"[defaults]\nbatch = \"all\"\n",
     "s.toml:2: defaults.batch: needs an integer, got the string \"all\""},
    {"[defaults]\nthreads = \"al\"\n",
     "s.toml:2: defaults.threads: needs an integer or \"all\", got \"al\""},
    {"[defaults]\nthreads = 0\n", "s.toml:2: defaults.threads: 0 is not in 1 to 65536"},
    {"[defaults]\nprecision = \"fp32\"\n",
     "s.toml:2: defaults.precision: \"fp32\" is not known, did you mean \"f32\"?"},
    {"[defaults]\ndevice = \"abacus\"\n",
     "s.toml:2: defaults.device: \"abacus\" is none of: cpu, null, cuda (the second of several: "
     "cuda:1), nor does a plug-in bring it"},
    {"[defaults]\ndevice = \"cudaa\"\n",
     "s.toml:2: defaults.device: \"cudaa\" is not known, did you mean \"cuda\"?"},
    {"[defaults]\ndevice = \"cuda:x\"\n",
     "s.toml:2: defaults.device: \"cuda:x\" is no device: give cpu, cuda, or one of several as "
     "cuda:1"},
    {"[defaults]\ndevice = \"cpu:1\"\n",
     "s.toml:2: defaults.device: \"cpu:1\" is not known, did you mean \"cpu\"?"},
    {"[defaults]\nprofilers = [\"papi\", \"powercup\"]\n",
     "s.toml:2: defaults.profilers: \"powercup\" is not known, did you mean \"powercap\"?"},
    {"[defaults]\ncold = \"yes\"\n",
     "s.toml:2: defaults.cold: needs true or false, got the string \"yes\""},
    {"[defaults.stop]\nsample_min = 3\n",
     "s.toml:2: defaults.stop.sample_min: is no key here; did you mean \"samples_min\"?"},
    {"[defaults.stop]\ninterval = 2\n", "s.toml:2: defaults.stop.interval: 2 is not in 0 to 1"},
    {"[defaults.stop]\ninterval = [0.1, 0.2]\n",
     "s.toml:2: defaults.stop.interval: takes one value, not a list"},
    {"[defaults.stop]\nseconds_max = 0\n",
     "s.toml:2: defaults.stop.seconds_max: 0 is not above 0 and at most 1e+06"},
    {"[workload]\nname = \"ncf\"\n",
     "s.toml:1: workload: is a table in two brackets: [[workload]]"},
    {"workload = [3]\n", "s.toml:1: workload: is a table of its own: [[workload]]"},
    {"\n[[workload]]\nbatch = 1\n", "s.toml:2: workload: needs either a name or a path"},
    {"[[workload]]\nname = \"ncf\"\npath = \"x.onnx\"\n",
     "s.toml:1: workload: needs either a name or a path"},
    {"[[workload]]\nname = \"resnt50\"\n",
     "s.toml:2: workload.name: workload \"resnt50\" is not known, did you mean \"resnet50\"?"},
    {"[[workload]]\nname = \"transformer\"\n",
     "s.toml:2: workload.name: workload \"transformer\" is not known; `ridge list` shows all"},
    {"[[workload]]\npath = \"model.txt\"\n",
     "s.toml:2: workload.path: \"model.txt\" does not end in .onnx"},
    {"[[workload]]\npath = \"no.onnx\"\n",
     "s.toml:2: workload.path: no.onnx: No such file or directory"},
    {RESNET "vesion = \"1\"\n", "s.toml:3: workload.vesion: is no key here, nor a parameter of "
                                "resnet50; did you mean \"version\"?"},
    {RESNET "version = \"1.6\"\n",
     "s.toml:3: workload.version: \"1.6\" is not known, did you mean \"1.5\"?"},
    {RESNET "version = true\n", "s.toml:3: workload.version: needs a string, got a boolean"},
    {RESNET "image = \"big\"\n",
     "s.toml:3: workload.image: needs an integer, got the string \"big\""},
    {RESNET "image = 0\n", "s.toml:3: workload.image: 0 is not in 1 to 1073741824"},
    {NCF "batch = { from = 1, to = 8 }\n", "s.toml:3: workload.batch: a range is { from = 1, "
                                           "to = 64, times = 2 } or { ..., plus = 8 }"},
    {NCF "batch = { from = 1, to = 8, time = 2 }\n",
     "s.toml:3: workload.batch: a range has from, to, and times or plus; not \"time\""},
    {NCF "batch = { from = 1, to = 8, times = 1 }\n",
     "s.toml:3: workload.batch: times = 1 does not go from 1 to 8"},
    {NCF "batch = { from = 9, to = 8, plus = 1 }\n",
     "s.toml:3: workload.batch: the range from 9 to 8 is empty or too wide"},
    {NCF "batch = { from = 1, to = 2000, plus = 1 }\n",
     "s.toml:3: workload.batch: more than 1024 values"},
    {"include = 3\n", "s.toml:1: include: needs strings, got integer"},
    {"include = [\"quik\"]\n",
     "s.toml:1: include: there is no suite \"quik\", did you mean \"quick\"?"},
};

TEST(mistakes_name_file_line_and_key)
{
    for (int k = 0; k < ARRAY_COUNT(mistakes); k++)
        bad(mistakes[k][0], mistakes[k][1]);
}

TEST(a_suite_that_is_not_there_lists_those_that_are)
{
    char text[SUITE_NAMES_MAX][SUITE_NAME_BYTES],
        message[512] = "s.toml:1: include: there is no suite \"none.toml\"; built in: ";
    const char *names[SUITE_NAMES_MAX];
    int count = suite_source_names(text, names, SUITE_NAMES_MAX);
    assert_true(count >= 6);
    for (int k = 0; k < count; k++) {
        size_t end = strlen(message);
        snprintf(message + end, sizeof(message) - end, "%s%s", k ? ", " : "", names[k]);
    }
    bad("include = \"none.toml\"\n", message);
}

/* ---- files ---- */

static char folder[64];

static enum status load(const char *name, struct suite *suite, struct error *err)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return suite_load(path, CPUS, suite, err);
}

TEST(includes_come_first_and_the_includer_wins)
{
    struct suite suite;
    put_file(folder, "/inner.toml", "[defaults]\nbatch = 1\nthreads = 2\n" NCF);
    put_file(folder, "/outer.toml",
             "include = [\"inner.toml\", \"inner\"]\n[defaults]\nbatch = 7\n" RESNET);
    MUST(load, "outer.toml", &suite);
    assert_int_equal(suite.count, 2); /* inner counts once */
    assert_string_equal(suite.entries[0].workload->name, "ncf");
    assert_string_equal(suite.entries[1].workload->name, "resnet50");
    integers_are(&suite.axes[KEY_BATCH], "7");
    integers_are(&suite.axes[KEY_THREADS], "2");
    const char *inner = strstr(suite.text, "threads = 2"), *outer = strstr(suite.text, "batch = 7");
    assert_true(inner && outer && inner < outer);
    suite_release(&suite);
}

TEST(an_error_in_an_include_names_that_file)
{
    struct suite suite;
    put_file(folder, "/wrong.toml", "\nbtach = 3\n");
    put_file(folder, "/outer.toml", "include = \"wrong.toml\"\n" NCF);
    FAILS(STATUS_FAILED, "/wrong.toml:2: btach: ", load, "outer.toml", &suite);
}

TEST(a_circle_of_includes_is_refused)
{
    struct suite suite;
    struct error err = {.message = ""};
    put_file(folder, "/a.toml", "include = \"b.toml\"\n" NCF);
    put_file(folder, "/b.toml", "\ninclude = \"./a.toml\"\n");
    assert_int_equal(load("a.toml", &suite, &err), STATUS_FAILED);
    assert_non_null(strstr(err.message, "b.toml:2: include: "));
    assert_non_null(strstr(err.message, "includes itself"));
}

TEST(deep_includes_end)
{
    struct suite suite;
    for (int k = 0; k < 20; k++) {
        char name[32], text[64];
        snprintf(name, sizeof(name), "/deep%d.toml", k);
        snprintf(text, sizeof(text), "include = \"deep%d.toml\"\n", k + 1);
        put_file(folder, name, text);
    }
    put_file(folder, "/deep20.toml", NCF);
    FAILS(STATUS_FAILED, "too many includes", load, "deep0.toml", &suite);
    MUST(load, "deep10.toml", &suite);
    suite_release(&suite);
}

TEST(models_are_relative_to_the_suite)
{
    struct suite suite;
    char path[128];
    put_file(folder, "/m.onnx", "");
    put_file(folder, "/model.toml", "[[workload]]\npath = \"m.onnx\"\n");
    MUST(load, "model.toml", &suite);
    snprintf(path, sizeof(path), "%s/m.onnx", folder);
    assert_string_equal(suite.entries[0].path, path);
    assert_null(suite.entries[0].workload);
    suite_release(&suite);
}

static void put_model(const char *name, const char *graph)
{
    struct builder b = {0};
    char path[128];
    build_file(&b, graph);
    snprintf(path, sizeof(path), "%s%s", folder, name);
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(b.bytes, 1, b.size, stream), b.size);
    fclose(stream);
    build_release(&b);
}

TEST(sizes_that_a_file_leaves_open_are_its_parameters)
{
    struct suite suite;
    put_model("/open.onnx", "in x f32[batch,length,threads]; y = Relu(x); "
                            "out y f32[batch,length,threads]");
    put_file(folder, "/open.toml",
             "[[workload]]\npath = \"open.onnx\"\nbatch = 2\nlength = [16, 32]\nthreads = 1\n");
    MUST(load, "open.toml", &suite);
    assert_int_equal(suite.entries[0].params[0].count, 2);
    assert_int_equal(suite.entries[0].params[0].values[1].integer, 32);
    assert_int_equal(suite.entries[0].params[1].count, 0); /* a key of suites, first of all */
    assert_int_equal(suite.entries[0].axes[KEY_THREADS].count, 1);
    suite_release(&suite);
    put_file(folder, "/wrong.toml", "[[workload]]\npath = \"open.onnx\"\nlenght = 16\n");
    FAILS(STATUS_FAILED, "nor a size that the file leaves open; did you mean \"length\"?", load,
          "wrong.toml", &suite);
    put_file(folder, "/wrong.toml", "[[workload]]\npath = \"open.onnx:length=16\"\n");
    FAILS(STATUS_FAILED, "a size has a line of its own", load, "wrong.toml", &suite);
}

TEST(embedded_suites_are_found_by_name_and_path)
{
    static const char *const names[] = {"quick", "suites/quick.toml", "table1"};
    for (int k = 0; k < ARRAY_COUNT(names); k++) {
        struct suite suite;
        assert_true(suite_exists(names[k]));
        MUST(suite_load, names[k], CPUS, &suite);
        assert_true(suite.count > 3);
        suite_release(&suite);
    }
    assert_false(suite_exists("resnet50"));
}

static bool is_key(const char *name)
{
    bool found =
        strcmp(name, "stop") == 0 || strcmp(name, "server") == 0 || strcmp(name, "scaling") == 0;
    for (int k = 0; k < KEY_COUNT; k++)
        found = found || strcmp(name, suite_key((enum suite_key_id)k)->name) == 0;
    return found;
}

/* A parameter that is called like a key could not be distinguished from it. */
TEST(no_parameter_is_called_like_a_key)
{
    for (int w = 0; w < workload_count(); w++)
        for (const struct param *p = workload_at(w)->params; p && p->name; p++)
            if (is_key(p->name))
                fail_msg("%s of %s is a key", p->name, workload_at(w)->name);
}

TEST(every_key_is_explained_and_its_default_is_valid)
{
    struct suite suite = {.cpus = CPUS};
    for (int k = 0; k < KEY_COUNT; k++) {
        const struct suite_key *key = suite_key((enum suite_key_id)k);
        struct suite_axis axis;
        struct error err = {.message = ""};
        assert_non_null(key->name);
        assert_true(strlen(key->help) > 5);
        if (key->usual && suite_axis_from_text(&suite, (enum suite_key_id)k, key->name, key->usual,
                                               &axis, &err) != STATUS_OK)
            fail_msg("%s", err.message);
    }
    suite_release(&suite);
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/ridge-suite-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    return system(command);
}

const struct unit_fixture unit_fixture = {.before_all = make_folder, .after_all = remove_folder};
