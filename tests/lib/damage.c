/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/damage.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/random.h"

enum { FILE_MAX = 16 << 20, FIELDS_MAX = 20000, DEPTH_MAX = 8, VARINT_MAX = 10 };

uint32_t draw(struct draws *draws, uint32_t below)
{
    uint32_t word[4];
    random_words(draws->seed, draws->next++, word);
    return below ? word[0] % below : 0;
}

struct bytes bytes_read(const char *path)
{
    struct bytes bytes = {NULL, 0};
    FILE *file = fopen(path, "rb");
    long size = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (size >= 0 && size <= FILE_MAX && fseek(file, 0, SEEK_SET) == 0)
        bytes.data = malloc((size_t)size + 1);
    if (bytes.data)
        bytes.size = fread(bytes.data, 1, (size_t)size, file);
    if (file)
        fclose(file);
    return bytes;
}

int bytes_write(const struct bytes *bytes, const char *path)
{
    FILE *file = fopen(path, "wb");
    bool whole = file && fwrite(bytes->data, 1, bytes->size, file) == bytes->size;
    return file && fclose(file) == 0 && whole ? 0 : -1;
}

/* ---- bytes ---- */

/* Opens a gap of `more` bytes. */
static bool grow(struct bytes *x, size_t at, size_t more)
{
    uint8_t *data = x->size + more <= FILE_MAX ? realloc(x->data, x->size + more + 1) : NULL;
    if (!data)
        return false;
    memmove(data + at + more, data + at, x->size - at);
    *x = (struct bytes){data, x->size + more};
    return true;
}

static void flip_bits(struct bytes *x, struct draws *d)
{
    for (uint32_t k = 0, count = 1 + draw(d, 8); k < count; k++)
        x->data[draw(d, (uint32_t)x->size)] ^= (uint8_t)(1 << draw(d, 8));
}

static void set_bytes(struct bytes *x, struct draws *d)
{
    static const uint8_t extremes[] = {0, 1, 0x7f, 0x80, 0xfe, 0xff};
    for (uint32_t k = 0, count = 1 + draw(d, 4); k < count; k++) {
        uint8_t value = draw(d, 2) ? (uint8_t)draw(d, 256) : extremes[draw(d, sizeof(extremes))];
        x->data[draw(d, (uint32_t)x->size)] = value;
    }
}

static void double_piece(struct bytes *x, struct draws *d)
{
    size_t at = draw(d, (uint32_t)x->size), length = 1 + draw(d, 64);
    length = at + length > x->size ? x->size - at : length;
    if (grow(x, at, length))
        memcpy(x->data + at, x->data + at + length, length);
}

static void drop_piece(struct bytes *x, struct draws *d)
{
    size_t at = draw(d, (uint32_t)x->size), length = 1 + draw(d, 64);
    length = at + length > x->size ? x->size - at : length;
    memmove(x->data + at, x->data + at + length, x->size - at - length);
    x->size -= length;
}

static void take_piece(struct bytes *x, const struct bytes *other, struct draws *d)
{
    size_t at = draw(d, (uint32_t)x->size), from = draw(d, (uint32_t)other->size);
    size_t length = 1 + draw(d, 256);
    length = from + length > other->size ? other->size - from : length;
    if (draw(d, 2) ? grow(x, at, length) : at + length <= x->size)
        memcpy(x->data + at, other->data + from, length);
}

void damage_bytes(struct bytes *x, const struct bytes *other, struct draws *d)
{
    uint32_t kind = draw(d, 8);
    if (!x->size)
        return;
    if (kind < 3)
        flip_bits(x, d);
    else if (kind < 5)
        set_bytes(x, d);
    else if (kind == 5)
        x->size = draw(d, (uint32_t)x->size);
    else if (kind == 6)
        draw(d, 2) ? double_piece(x, d) : drop_piece(x, d);
    else if (other->size)
        take_piece(x, other, d);
}

/* ---- messages ---- */

/* One field; those of a message inside follow it, deeper by one. */
struct field {
    size_t begin, payload, end; /* of the whole, of what is in it */
    uint32_t number;
    int type; /* of the wire: 0 varint, 1 and 5 fixed, 2 bytes or a message */
    int parent;
};

struct message {
    const struct bytes *bytes;
    struct field *fields;
    int count;
};

/* Bytes that the varint has; 0: none is there. */
static size_t varint_at(const struct bytes *x, size_t at, size_t end, uint64_t *value)
{
    *value = 0;
    for (size_t k = 0; k < VARINT_MAX && at + k < end; k++) {
        *value |= (uint64_t)(x->data[at + k] & 0x7f) << (7 * k);
        if (!(x->data[at + k] & 0x80))
            return k + 1;
    }
    return 0;
}

static bool read_field(const struct bytes *x, size_t at, size_t end, struct field *f)
{
    uint64_t tag, value;
    size_t length = varint_at(x, at, end, &tag);
    *f = (struct field){.begin = at, .payload = at + length, .type = (int)(tag & 7)};
    f->number = (uint32_t)(tag >> 3);
    if (!length || !f->number || f->number > 100)
        return false;
    size_t more = f->type == 1 ? 8 : f->type == 5 ? 4 : varint_at(x, f->payload, end, &value);
    if (!more || (f->type > 2 && f->type != 5) || f->payload + more > end)
        return false;
    f->end = f->payload + more;
    if (f->type == 2) {
        f->payload += more;
        if (value > end - f->payload)
            return false;
        f->end = f->payload + (size_t)value;
    }
    return true;
}

/* False, and nothing kept: these bytes are no message. */
static bool read_message(struct message *m, size_t at, size_t end, int parent, int depth)
{
    int before = m->count;
    while (at < end) {
        struct field f;
        if (m->count == FIELDS_MAX || !read_field(m->bytes, at, end, &f)) {
            m->count = before;
            return false;
        }
        f.parent = parent;
        m->fields[m->count++] = f;
        int here = m->count - 1;
        if (f.type == 2 && f.end > f.payload && depth < DEPTH_MAX)
            read_message(m, f.payload, f.end, here, depth + 1);
        at = f.end;
    }
    return true;
}

static size_t put_varint(uint8_t *to, uint64_t value)
{
    size_t length = 0;
    do {
        to[length++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value);
    return length;
}

/* Replaces bytes [from, to) by others; the lengths of all messages round them follow. */
static void replace(struct bytes *x, const struct message *m, int inside, size_t from, size_t to,
                    const uint8_t *data, size_t size)
{
    struct bytes made = {malloc(size + 1), size};
    if (!made.data)
        return;
    memcpy(made.data, data, size);
    for (;;) { /* from the innermost to the file */
        size_t begin = inside < 0 ? 0 : m->fields[inside].payload;
        size_t end = inside < 0 ? x->size : m->fields[inside].end, head = 0;
        uint8_t tag[2 * VARINT_MAX];
        size_t body = from - begin + made.size + end - to;
        if (inside >= 0) {
            head = put_varint(tag, (uint64_t)m->fields[inside].number << 3 | 2);
            head += put_varint(tag + head, body);
        }
        struct bytes outer = {malloc(head + body + 1), head + body};
        if (!outer.data)
            break;
        memcpy(outer.data, tag, head);
        memcpy(outer.data + head, x->data + begin, from - begin);
        memcpy(outer.data + head + from - begin, made.data, made.size);
        memcpy(outer.data + head + from - begin + made.size, x->data + to, end - to);
        free(made.data);
        made = outer;
        if (inside < 0) {
            free(x->data);
            *x = made;
            return;
        }
        from = m->fields[inside].begin;
        to = m->fields[inside].end;
        inside = m->fields[inside].parent;
    }
    free(made.data);
}

uint64_t draw_extreme(struct draws *d, uint64_t value)
{
    static const uint64_t values[] = {0,          1,          2,          7,
                                      UINT64_MAX, UINT32_MAX, 0x7fffffff, 1u << 31,
                                      1ull << 40, 1ull << 62, 1ull << 63, UINT64_MAX - 1,
                                      0x10000,    1000,       16};
    uint32_t kind = draw(d, 4);
    return kind == 0   ? value + 1
           : kind == 1 ? value - 1
                       : values[draw(d, sizeof(values) / sizeof(values[0]))];
}

static void set_number(struct bytes *x, const struct message *m, int at, struct draws *d)
{
    const struct field *f = &m->fields[at];
    uint8_t made[2 * VARINT_MAX];
    uint64_t value;
    varint_at(x, f->payload, f->end, &value);
    size_t size = put_varint(made, (uint64_t)f->number << 3);
    size += put_varint(made + size, draw_extreme(d, value));
    replace(x, m, f->parent, f->begin, f->end, made, size);
}

/* A field of the other message, of the same number if there is one among some draws. */
static const struct field *field_like(const struct message *other, uint32_t number, struct draws *d)
{
    const struct field *f = NULL;
    for (int k = 0; k < 40 && other->count; k++) {
        f = &other->fields[draw(d, (uint32_t)other->count)];
        if (f->number == number)
            break;
    }
    return f;
}

static void change_field(struct bytes *x, const struct message *m, const struct message *other,
                         struct draws *d)
{
    int at = (int)draw(d, (uint32_t)m->count);
    const struct field *f = &m->fields[at], *g;
    switch (f->type == 0 ? draw(d, 5) : 1 + draw(d, 5)) {
    case 0:
        set_number(x, m, at, d);
        break;
    case 1: /* dropped */
        replace(x, m, f->parent, f->begin, f->end, x->data, 0);
        break;
    case 2: /* doubled */
        replace(x, m, f->parent, f->begin, f->begin, x->data + f->begin, f->end - f->begin);
        break;
    case 3: /* another one of this message in its place */
        g = &m->fields[draw(d, (uint32_t)m->count)];
        replace(x, m, f->parent, f->begin, f->end, x->data + g->begin, g->end - g->begin);
        break;
    default: /* one of the other file */
        g = field_like(other, f->number, d);
        if (g)
            replace(x, m, f->parent, f->begin, f->end, other->bytes->data + g->begin,
                    g->end - g->begin);
    }
}

void damage_message(struct bytes *x, const struct bytes *other, struct draws *d)
{
    struct message m = {x, malloc(FIELDS_MAX * sizeof(struct field)), 0};
    struct message o = {other, malloc(FIELDS_MAX * sizeof(struct field)), 0};
    if (m.fields && o.fields)
        read_message(&o, 0, other->size, -1, 0);
    if (m.fields && o.fields && read_message(&m, 0, x->size, -1, 0) && m.count)
        change_field(x, &m, &o, d);
    else
        damage_bytes(x, other, d);
    free(m.fields);
    free(o.fields);
}
