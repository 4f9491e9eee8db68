/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/suite/suite_source.h"

#include <string.h>
#include <unistd.h>

#include "base/embedded.h"
#include "base/text/options.h"

static bool take_embedded(struct suite_source *source, const char *path)
{
    const struct embedded *file = embedded_find(path);
    if (!file)
        return false;
    snprintf(source->path, sizeof(source->path), "%s", file->path);
    source->text = file->text;
    source->size = file->size;
    return true;
}

static bool is_name(const char *word)
{
    return *word && strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_-") == strlen(word);
}

/* A file beside `from`, else an embedded suite of this path or name. False: there is none. */
static bool locate(const char *word, const char *from, struct suite_source *source)
{
    const char *slash = from && word[0] != '/' ? strrchr(from, '/') : NULL;
    int folder = slash ? (int)(slash + 1 - from) : 0;
    char name[PATH_MAX];
    int length = snprintf(source->path, sizeof(source->path), "%.*s%s%s", folder, from ? from : "",
                          word, is_name(word) ? ".toml" : "");
    if (length < (int)sizeof(source->path) && access(source->path, F_OK) == 0)
        return true;
    if (is_name(word))
        snprintf(name, sizeof(name), "suites/%s.toml", word);
    else
        snprintf(name, sizeof(name), "%s", source->path);
    return take_embedded(source, name) || (!is_name(word) && take_embedded(source, word));
}

bool suite_exists(const char *path)
{
    struct suite_source source = {.text = NULL};
    return locate(path, NULL, &source);
}

int suite_source_names(char text[][SUITE_NAME_BYTES], const char **names, int names_max)
{
    static const char folder[] = "suites/";
    int count = 0;
    if (names_max > SUITE_NAMES_MAX)
        names_max = SUITE_NAMES_MAX;
    for (const struct embedded *file = embedded_next(folder, NULL); file && count < names_max;
         file = embedded_next(folder, file), count++) {
        const char *name = file->path + strlen(folder);
        snprintf(text[count], SUITE_NAME_BYTES, "%.*s", (int)strcspn(name, "."), name);
        names[count] = text[count];
    }
    return count;
}

static enum status no_suite(const char *word, const struct suite_place *place, struct error *err)
{
    char text[SUITE_NAMES_MAX][SUITE_NAME_BYTES], list[256] = "";
    const char *names[SUITE_NAMES_MAX];
    int count = suite_source_names(text, names, SUITE_NAMES_MAX);
    size_t used = 0;
    for (int k = 0; k < count && used < sizeof(list); k++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", k ? ", " : "", names[k]);
    const char *near = nearest_word(word, names, count);
    if (near)
        return suite_complain(place, err, "there is no suite \"%.200s\", did you mean \"%s\"?",
                              word, near);
    return suite_complain(place, err, "there is no suite \"%.200s\"; built in: %s", word, list);
}

enum status suite_source_find(const char *word, const char *from, const struct suite_place *place,
                              struct suite_source *source, struct error *err)
{
    *source = (struct suite_source){.text = NULL};
    return locate(word, from, source) ? STATUS_OK : no_suite(word, place, err);
}

enum status suite_source_open(struct suite_source *source, struct error *err)
{
    if (source->text)
        return STATUS_OK;
    TRY(file_map(source->path, &source->file, err));
    source->text = source->file.data;
    source->size = source->file.size;
    return STATUS_OK;
}

void suite_source_close(struct suite_source *source)
{
    file_unmap(&source->file);
    source->text = NULL;
}
