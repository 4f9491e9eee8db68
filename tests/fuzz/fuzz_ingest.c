/* SPDX-License-Identifier: Apache-2.0
 *
 * Taking in a hostile database. The first byte of an input says what the rest is: 'f', a file; 'p',
 * damage to a sound one, 5 bytes each: place (4, little-endian, modulo the size) and what to xor
 * there. Whatever it is, our database stays sound, and a refusal leaves it as it was. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "results/sqlite.h"
#include "tests/lib/made_results.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Made once, by the first input. */
static struct {
    struct store *store;
    uint8_t *sound;
    size_t size;
    char *folder;
    char other[600];
} bench;

static void must(int bad)
{
    if (bad)
        abort();
}

static void fill(struct store *store)
{
    struct run_head head = made_head("bbbbbbbb-0000-4000-8000-000000000002", 1);
    struct made_record made;
    int64_t run;
    int count;
    const struct ceiling_record *ceilings = made_ceilings(&count);
    must(run_begin(store, &head, &run, NULL));
    must(run_put_facts(store, run, "before", head.environment, NULL));
    must(run_put_ceilings(store, run, ceilings, count, NULL));
    for (int k = 0; k < 2; k++) {
        must(made_record(&made, k, 0.02, 20, MADE_OPS));
        must(run_put(store, run, &made.record, NULL));
        made_release(&made);
    }
    must(run_end(store, run, true, true, "", NULL));
}

static void read_sound(void)
{
    FILE *file = fopen(bench.other, "rb");
    must(!file || fseek(file, 0, SEEK_END));
    bench.size = (size_t)ftell(file);
    bench.sound = malloc(bench.size);
    rewind(file);
    must(!bench.sound || fread(bench.sound, 1, bench.size, file) != bench.size);
    fclose(file);
}

static void clean_up(void)
{
    store_close(bench.store);
    made_folder_remove(bench.folder);
    free(bench.sound);
}

static void set_up(void)
{
    char path[600];
    struct store *other;
    bench.folder = made_folder();
    must(!bench.folder);
    snprintf(path, sizeof(path), "%s/ridge.db", bench.folder);
    snprintf(bench.other, sizeof(bench.other), "%s/other.db", bench.folder);
    must(store_open(path, STORE_WRITE, &bench.store, NULL));
    must(store_open(bench.other, STORE_WRITE, &other, NULL));
    fill(other);
    store_close(other);
    read_sound();
    bench.store->busy_ms = 0;
    must(sql_exec(bench.store, "PRAGMA synchronous = OFF", "", NULL)); /* thousands of rounds */
    atexit(clean_up);
}

static void write_other(const uint8_t *data, size_t size)
{
    FILE *file = fopen(bench.other, "wb");
    must(!file || fwrite(data, 1, size, file) != size);
    fclose(file);
}

static void write_damaged(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(bench.size);
    must(!copy);
    memcpy(copy, bench.sound, bench.size);
    for (; size >= 5; data += 5, size -= 5) {
        size_t at = data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16 | (size_t)data[3] << 24;
        copy[at % bench.size] ^= data[4];
    }
    write_other(copy, bench.size);
    free(copy);
}

static int64_t number(const char *sql)
{
    int64_t value;
    must(sql_integer(bench.store, sql, &value, NULL));
    return value;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char rows[] = "SELECT (SELECT count(*) FROM run) + (SELECT count(*) FROM result) "
                               "+ (SELECT count(*) FROM sample) + (SELECT count(*) FROM point)";
    struct ingest_counts counts;
    if (!bench.store)
        set_up();
    if (size && data[0] == 'p')
        write_damaged(data + 1, size - 1);
    else
        write_other(data + (size > 0), size - (size > 0));
    int64_t before = number(rows);
    enum status status = store_ingest(bench.store, bench.other, &counts, NULL);
    if (status != STATUS_OK && number(rows) != before)
        abort();
    if (status == STATUS_OK && counts.runs_new + counts.results_new > 0 &&
        (number("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'") ||
         number("SELECT count(*) FROM pragma_foreign_key_check")))
        abort();
    if (status == STATUS_OK) /* the next one is new again */
        must(sql_exec(bench.store,
                      "DELETE FROM run; DELETE FROM point; DELETE FROM host; DELETE FROM env_set; "
                      "DELETE FROM build; DELETE FROM baseline",
                      "", NULL));
    return 0;
}
