// SPDX-License-Identifier: Apache-2.0
//
// toml++ reads, this file copies what it read into an arena. Tables of toml++ are sorted by key;
// the copies are put back into the order of the file by where they stood.
//
// toml++ 3.3 asserts what some broken files violate ("[[[a]]]", fixed upstream in pull request
// 301): its assertions are made exceptions here, whose only way out is a status.
#undef NDEBUG
struct toml_assertion {
};
[[noreturn]] static void toml_broken()
{
    throw toml_assertion();
}
#define TOML_ASSERT(condition) ((condition) ? (void)0 : toml_broken())

#define TOML_HEADER_ONLY       1
#define TOML_EXCEPTIONS        0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 32

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <toml++/toml.h>

extern "C" {
#include "base/toml.h"
}

namespace
{

constexpr int DEPTH_MAX = 32;
// toml++ frees nested tables by recursion; a dotted key of a million parts would end the stack.
constexpr size_t DOTS_MAX = 256;
constexpr size_t SIZE_MAX_BYTES = 1 << 20;

struct copier {
    const char *file;
    struct arena *arena;
    struct error *err;
    int depth;
};

enum status copy_value(copier &c, const toml::node &node, toml_value *out);

char *copy_text(copier &c, std::string_view text)
{
    char *copy = static_cast<char *>(arena_alloc(c.arena, text.size() + 1));
    if (copy && !text.empty())
        memcpy(copy, text.data(), text.size());
    return copy;
}

enum status complain(copier &c, const toml::source_region &at, const char *what)
{
    return FAIL(c.err, STATUS_FAILED, "%s:%u:%u: %s", c.file, at.begin.line, at.begin.column, what);
}

// Appends a copy of `node` to the children of `parent`; *last is the child before it.
enum status copy_child(copier &c, const toml::node &node, std::string_view key, bool has_key,
                       toml_value *parent, toml_value **last)
{
    toml_value *child = static_cast<toml_value *>(arena_alloc(c.arena, sizeof(*child)));
    if (!child)
        return FAIL_NO_MEMORY(c.err);
    if (has_key && !(child->key = copy_text(c, key)))
        return FAIL_NO_MEMORY(c.err);
    TRY(copy_value(c, node, child));
    if (*last)
        (*last)->next = child;
    else
        parent->first = child;
    *last = child;
    parent->count++;
    return STATUS_OK;
}

struct place {
    const toml::key *key;
    const toml::node *node;
    toml::source_position at;
};

enum status copy_table(copier &c, const toml::table &table, toml_value *out)
{
    std::vector<place> places;
    places.reserve(table.size());
    for (auto &&[key, node] : table)
        places.push_back({&key, &node, key.source().begin});
    std::sort(places.begin(), places.end(), [](const place &a, const place &b) {
        return a.at.line != b.at.line ? a.at.line < b.at.line : a.at.column < b.at.column;
    });
    toml_value *last = nullptr;
    for (const place &p : places)
        TRY(copy_child(c, *p.node, p.key->str(), true, out, &last));
    // A key says better than its value where a person wrote it: a value may begin a line later.
    size_t k = 0;
    for (const toml_value *child = out->first; child; child = child->next, k++) {
        const_cast<toml_value *>(child)->line = static_cast<int>(places[k].at.line);
        const_cast<toml_value *>(child)->column = static_cast<int>(places[k].at.column);
    }
    return STATUS_OK;
}

enum status copy_array(copier &c, const toml::array &array, toml_value *out)
{
    toml_value *last = nullptr;
    for (const toml::node &node : array)
        TRY(copy_child(c, node, {}, false, out, &last));
    return STATUS_OK;
}

enum status copy_string(copier &c, const toml::value<std::string> &value, toml_value *out)
{
    out->kind = TOML_TEXT;
    if (value.get().find('\0') != std::string::npos)
        return complain(c, value.source(), "a string cannot hold the character U+0000");
    out->text = copy_text(c, value.get());
    return out->text ? STATUS_OK : FAIL_NO_MEMORY(c.err);
}

enum status copy_inner(copier &c, const toml::node &node, toml_value *out)
{
    if (c.depth >= DEPTH_MAX)
        return complain(c, node.source(), "nested deeper than 32");
    c.depth++;
    out->kind = node.is_table() ? TOML_TABLE : TOML_ARRAY;
    enum status status = node.is_table() ? copy_table(c, *node.as_table(), out)
                                         : copy_array(c, *node.as_array(), out);
    c.depth--;
    return status;
}

enum status copy_value(copier &c, const toml::node &node, toml_value *out)
{
    out->file = c.file;
    out->line = static_cast<int>(node.source().begin.line);
    out->column = static_cast<int>(node.source().begin.column);
    if (node.is_table() || node.is_array())
        return copy_inner(c, node, out);
    if (node.is_string())
        return copy_string(c, *node.as_string(), out);
    out->kind = TOML_OTHER;
    if (const auto *integer = node.as_integer()) {
        out->kind = TOML_INT;
        out->integer = integer->get();
        out->number = static_cast<double>(integer->get());
    } else if (const auto *number = node.as_floating_point()) {
        out->kind = TOML_FLOAT;
        out->number = number->get();
    } else if (const auto *truth = node.as_boolean()) {
        out->kind = TOML_BOOL;
        out->truth = truth->get();
    }
    return STATUS_OK;
}

bool dots_are_few(std::string_view text)
{
    size_t dots = 0;
    for (char ch : text) {
        if (ch == '\n')
            dots = 0;
        else if (ch == '.' && ++dots > DOTS_MAX)
            return false;
    }
    return true;
}

enum status parse(const char *file, std::string_view text, struct arena *arena,
                  const struct toml_value **root, struct error *err)
{
    copier c = {static_cast<const char *>(arena_strdup(arena, file)), arena, err, 0};
    toml_value *top = static_cast<toml_value *>(arena_alloc(arena, sizeof(*top)));
    if (!c.file || !top)
        return FAIL_NO_MEMORY(err);
    toml::parse_result result = toml::parse(text, std::string_view{});
    if (!result) {
        std::string_view what = result.error().description();
        const toml::source_position &at = result.error().source().begin;
        return FAIL(err, STATUS_FAILED, "%s:%u:%u: %.*s", file, at.line, at.column,
                    static_cast<int>(what.size() < 300 ? what.size() : 300), what.data());
    }
    TRY(copy_value(c, result.table(), top));
    *root = top;
    return STATUS_OK;
}

} // namespace

enum status toml_parse(const char *file, const char *text, size_t size, struct arena *arena,
                       const struct toml_value **root, struct error *err)
{
    *root = nullptr;
    if (size > SIZE_MAX_BYTES)
        return FAIL(err, STATUS_FAILED, "%s: %zu bytes are too many for a TOML file, limit 1 MiB",
                    file, size);
    std::string_view view(text ? text : "", text ? size : 0);
    if (!dots_are_few(view))
        return FAIL(err, STATUS_FAILED, "%s: a line has more than %zu dots", file, DOTS_MAX);
    try {
        return parse(file, view, arena, root, err);
    } catch (const std::bad_alloc &) {
        return FAIL_NO_MEMORY(err);
    } catch (const toml_assertion &) {
        return FAIL(err, STATUS_FAILED,
                    "%s: is not TOML; a table begins with [name] or [[name]], nothing else", file);
    }
}

const struct toml_value *toml_find(const struct toml_value *table, const char *key)
{
    for (const toml_value *child = table ? table->first : nullptr; child; child = child->next)
        if (child->key && strcmp(child->key, key) == 0)
            return child;
    return nullptr;
}

const char *toml_kind_name(enum toml_kind kind)
{
    static const char *const names[] = {"table",       "list",    "string",        "integer",
                                        "real number", "boolean", "date or a time"};
    return names[kind];
}
