/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "results/sqlite.h"
#include "tests/lib/damage.h"

/* Writes a number's column as text, and such: what SQLite itself would refuse is put in behind its
 * back. */
static void damage_rows(const char *path, struct draws *d)
{
    static const char *const changes[] = {
        "UPDATE metric SET value = 'much'",
        "UPDATE sample SET time_ns = 'soon'",
        "UPDATE sample SET time_ns = -9223372036854775808",
        "UPDATE run SET started_utc = zeroblob(100000)",
        "UPDATE run SET uuid = x'00ff00ff'",
        "UPDATE result SET status = 'splendid'",
        "UPDATE result SET run = 77",
        "UPDATE metric SET value = 1e999, n = -1",
        "UPDATE point SET workload = char(27) || '[2J' || char(10) || workload",
        "UPDATE result SET sequence = 9223372036854775807 WHERE id = 1",
        "DELETE FROM point",
        "DELETE FROM env_set",
        "DROP TABLE sample",
        "UPDATE run SET order_key = 9223372036854775807, planned = -5",
        "UPDATE ceiling SET value = 0, threads = -1",
        "UPDATE op SET name = '', kind = ''",
        "PRAGMA user_version = 1",
        "PRAGMA user_version = 0",
        "PRAGMA application_id = 7",
        "CREATE VIEW loop AS SELECT * FROM loop",
        "CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM run; END",
    };
    sqlite3 *db;
    char sql[256];
    if (sqlite3_open(path, &db) == SQLITE_OK) {
        sqlite3_exec(db,
                     "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, "
                     "'STRICT', '') WHERE type = 'table'; PRAGMA writable_schema = RESET;"
                     "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON",
                     NULL, NULL, NULL);
        for (uint32_t k = 0, count = 1 + draw(d, 3); k < count; k++)
            sqlite3_exec(db, changes[draw(d, ARRAY_COUNT(changes))], NULL, NULL, NULL);
        if (draw(d, 2)) /* the tables look as they should */
            sqlite3_exec(db,
                         "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = sql || "
                         "' STRICT' WHERE type = 'table' AND sql NOT LIKE '%WITHOUT ROWID%'",
                         NULL, NULL, NULL);
        else if (draw(d, 2)) {
            snprintf(sql, sizeof(sql),
                     "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET %s WHERE rowid = %u",
                     draw(d, 2) ? "rootpage = 3" : "sql = replace(sql, 'INTEGER', 'TEXT')",
                     1 + draw(d, 20));
            sqlite3_exec(db, sql, NULL, NULL, NULL);
        }
    }
    sqlite3_close(db);
}

/* Pages change places, or lose parts; rarely, what is at the head of the file. */
static void damage_pages(struct bytes *x, struct draws *d)
{
    enum { PAGE = 4096 };
    uint32_t pages = (uint32_t)(x->size / PAGE);
    for (uint32_t k = 0, count = 1 + draw(d, 4); pages > 1 && k < count; k++) {
        uint8_t *page = x->data + (size_t)draw(d, pages) * PAGE;
        if (draw(d, 3) == 0)
            memmove(page, x->data + (size_t)draw(d, pages) * PAGE, PAGE);
        else if (draw(d, 2))
            page[draw(d, 120)] = (uint8_t)draw(d, 256); /* its header and the first cells */
        else
            memset(page + draw(d, PAGE / 2), (int)draw(d, 256), PAGE / 2);
    }
}

static void write_log(const char *path, const struct bytes *other, struct draws *d)
{
    char log[620];
    static const uint8_t head[] = {0x37, 0x7f, 0x06, 0x82, 0x00, 0x2d, 0xe2, 0x18,
                                   0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00};
    snprintf(log, sizeof(log), "%s-%s", path, draw(d, 4) ? "wal" : "journal");
    size_t size = draw(d, 3) ? other->size : draw(d, 200);
    struct bytes made = {malloc(size + sizeof(head)), size < other->size ? size : other->size};
    if (made.data) {
        memcpy(made.data, other->data, made.size);
        if (made.size >= sizeof(head) && draw(d, 4))
            memcpy(made.data, head, sizeof(head));
        bytes_write(&made, log);
    }
    free(made.data);
}

void damage_database(struct bytes *x, const struct bytes *other, const char *path, struct draws *d)
{
    uint32_t kind = draw(d, 6);
    if (kind < 2)
        damage_pages(x, d);
    else if (kind == 2)
        damage_bytes(x, other, d);
    bytes_write(x, path);
    if (kind == 3)
        write_log(path, other, d);
    else if (kind > 3)
        damage_rows(path, d);
}
