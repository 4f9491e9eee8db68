/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/system/plugin_files.h"

#include <dirent.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/registry.h"
#include "base/system/file.h"
#include "base/system/hash.h"

enum { PATH_BYTES = 4096 };

/* Plug-ins that the build left out: ABSENT("onednn", "dnnl.h not found: apt-get ...") each. */
static const struct left_out {
    const char *name, *reason;
} left_out[] = {
#if __has_include("absent_plugins.inc")
#define ABSENT(name, reason) {name, reason},
#include "absent_plugins.inc"
#undef ABSENT
#endif
    {NULL, NULL},
};

static int is_library(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && dot != entry->d_name && strcmp(dot, ".so") == 0;
}

bool plugin_files_each(const char *folder, plugin_file_visit *visit, void *context)
{
    struct dirent **files = NULL;
    int count = scandir(folder, &files, is_library, alphasort);
    for (int k = 0; k < count; k++) {
        char path[PATH_BYTES + 300], name[256];
        size_t length = strlen(files[k]->d_name) - strlen(".so");
        snprintf(path, sizeof(path), "%s/%s", folder, files[k]->d_name);
        snprintf(name, sizeof(name), "%.*s", (int)length, files[k]->d_name);
        visit(path, name, context);
        free(files[k]);
    }
    free(files);
    return count >= 0;
}

static void each_named(plugin_folder_visit *visit, void *context)
{
    const char *path = getenv("RIDGE_PLUGIN_PATH");
    for (const char *at = path ? path : ""; *at;) {
        char folder[PATH_BYTES];
        size_t length = strcspn(at, ":");
        snprintf(folder, sizeof(folder), "%.*s", (int)length, at);
        if (length)
            visit(folder, true, context);
        at += length + (at[length] != '\0');
    }
}

void plugin_folders_each(plugin_folder_visit *visit, void *context)
{
    static const char *const folders[] = {"plugins", "build/release/plugins"};
    char program[PATH_BYTES];
    each_named(visit, context);
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(program, '/');
    if (!slash)
        return;
    *slash = '\0';
    for (int k = 0; k < ARRAY_COUNT(folders); k++) {
        char folder[PATH_BYTES + 32];
        snprintf(folder, sizeof(folder), "%s/%s", program, folders[k]);
        visit(folder, false, context);
    }
}

const char *plugin_left_out_at(int index)
{
    return left_out[index].name;
}

const char *plugin_left_out(const char *name)
{
    for (const struct left_out *absent = left_out; absent->name; absent++)
        if (strcmp(absent->name, name) == 0)
            return absent->reason;
    return NULL;
}

/* ---- what is in one ---- */

/* The part of the file that segment k stands for; size 0: there is none. */
static ElfW(Phdr) segment_of(const struct file *file, const ElfW(Ehdr) * head, int k)
{
    ElfW(Phdr) segment;
    size_t at = head->e_phoff + (size_t)k * sizeof(segment);
    if (head->e_phoff > file->size || file->size - head->e_phoff < sizeof(segment) ||
        at > file->size - sizeof(segment))
        return (ElfW(Phdr)){.p_type = PT_NULL};
    memcpy(&segment, (const char *)file->data + at, sizeof(segment));
    if (segment.p_offset > file->size || segment.p_filesz > file->size - segment.p_offset)
        segment.p_type = PT_NULL;
    return segment;
}

/* Where the first note lies in [from, to); `to` when none does. *end: where that note ends. */
static uint64_t next_note(const struct file *file, const ElfW(Ehdr) * head, uint64_t from,
                          uint64_t to, uint64_t *end)
{
    uint64_t first = to;
    *end = to;
    for (int k = 0; k < head->e_phnum; k++) {
        ElfW(Phdr) note = segment_of(file, head, k);
        uint64_t begin = note.p_offset > from ? note.p_offset : from;
        uint64_t last = note.p_offset + note.p_filesz;
        if (note.p_type != PT_NOTE || last <= from || begin >= first)
            continue;
        first = begin;
        *end = last < to ? last : to;
    }
    return first;
}

static uint64_t hash_loaded(uint64_t hash, const struct file *file, const ElfW(Ehdr) * head)
{
    for (int k = 0; k < head->e_phnum; k++) {
        ElfW(Phdr) part = segment_of(file, head, k);
        /* The file's own head says where debuggers find their part. */
        uint64_t at = part.p_offset ? part.p_offset : sizeof(*head);
        uint64_t to = part.p_offset + part.p_filesz;
        while (part.p_type == PT_LOAD && at < to) {
            uint64_t after, note = next_note(file, head, at, to, &after);
            hash = hash64_more(hash, (const char *)file->data + at, note - at);
            at = after;
        }
    }
    return hash;
}

uint64_t plugin_code(const char *path)
{
    struct file file;
    ElfW(Ehdr) head;
    uint64_t hash = 0;
    if (file_map(path, &file, NULL) != STATUS_OK)
        return 0;
    bool is_elf = file.size >= sizeof(head) && memcmp(file.data, ELFMAG, SELFMAG) == 0;
    if (is_elf) {
        memcpy(&head, file.data, sizeof(head));
        hash = head.e_phentsize == sizeof(ElfW(Phdr)) ? hash_loaded(hash, &file, &head) : hash;
    }
    if (!hash)
        hash = hash64_more(0, file.data, file.size);
    file_unmap(&file);
    return hash;
}
