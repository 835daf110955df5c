/* device_visible.c -- which GPUs of the machine a process sees, in which order, and how much of
 * their memory it uses.
 *
 * 1. LEAT_VISIBLE_DEVICES, or, where that is not set, CUDA_VISIBLE_DEVICES lists the machine's
 *    numbers of the GPUs that there are for the process. CUDA_VISIBLE_DEVICES is read as CUDA reads
 *    it: what follows the first entry that names no GPU cannot be seen. In LEAT_VISIBLE_DEVICES
 *    such an entry is an error.
 * 2. leat_gpu_options.visible_devices (visible_device_list of TensorFlow's GPUOptions) lists
 *    positions in what 1 leaves; a wrong entry is an error, in TensorFlow's words.
 * 3. Where the machine has no such device at all, no entry is an error, so that a program with
 *    these settings runs on the CPU there, as TensorFlow's does.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/log.h"
#include "runtime/device.h"

typedef struct numbers {
    int *v;
    int n;
} numbers;

/* Part of a text. */
typedef struct piece {
    const char *s;
    int n;
} piece;

static piece trimmed(piece p)
{
    while (p.n && isspace((unsigned char)p.s[0])) {
        p.s++;
        p.n--;
    }
    while (p.n && isspace((unsigned char)p.s[p.n - 1]))
        p.n--;
    return p;
}

/* A value that a shell or a configuration file has left in quotes. */
static piece without_quotes(const char *text)
{
    piece p = trimmed((piece){text, (int)strnlen(text, 1 << 20)});
    if (p.n >= 2 && (p.s[0] == '"' || p.s[0] == '\'') && p.s[p.n - 1] == p.s[0])
        p = trimmed((piece){p.s + 1, p.n - 2});
    return p;
}

/* Takes the first entry of a list off it. False if there is none. */
static bool next_entry(piece *list, piece *out)
{
    if (list->n < 0)
        return false;
    const char *comma = memchr(list->s, ',', (size_t)list->n);
    int n = comma ? (int)(comma - list->s) : list->n;
    *out = trimmed((piece){list->s, n});
    list->s += n + 1;
    list->n -= n + 1; /* -1 after the last entry */
    return true;
}

/* The number that an entry is; -1: it is none. */
static int number_of(piece p)
{
    int v = 0;
    for (int i = 0; i < p.n; i++) {
        if (!isdigit((unsigned char)p.s[i]) || v > 1000000)
            return -1;
        v = v * 10 + p.s[i] - '0';
    }
    return p.n ? v : -1;
}

static bool has(const numbers *list, int v)
{
    for (int i = 0; i < list->n; i++)
        if (list->v[i] == v)
            return true;
    return false;
}

/* ---- The environment ---- */

/* Entries up to the first one that is none of `most` GPUs or is there already, which *wrong_out
 * then is. Returns whether there was one. */
static bool read_entries(const char *text, int most, numbers *out, piece *wrong_out)
{
    piece list = without_quotes(text), entry;
    if (!list.n)
        return false;
    while (next_entry(&list, &entry)) {
        int v = number_of(entry);
        if (v < 0 || v >= most || has(out, v)) {
            *wrong_out = entry;
            return true;
        }
        out->v[out->n++] = v;
    }
    return false;
}

static void say_hidden(const leat_device_kind *k, const char *whose, const char *text, piece wrong,
                       int most)
{
    if (wrong.n == 2 && memcmp(wrong.s, "-1", 2) == 0)
        return; /* the usual way to hide what follows */
    LEAT_LOG(WARNING,
             "%s_VISIBLE_DEVICES=%s: \"%.*s\" is not the number of a further %s device of this "
             "machine, which has %d; neither it nor what follows it is visible",
             whose, text, wrong.n, wrong.s, k->type, most);
}

static leat_status from_environment(const leat_device_kind *k, int most, numbers *out)
{
    const char *own = getenv("LEAT_VISIBLE_DEVICES"), *cuda = getenv("CUDA_VISIBLE_DEVICES");
    const char *text = own ? own : cuda;
    piece wrong;
    if (!text) {
        for (int i = 0; i < most; i++)
            out->v[out->n++] = i;
        return NULL;
    }
    if (!read_entries(text, most, out, &wrong))
        return NULL;
    if (!own || !most) {
        say_hidden(k, own ? "LEAT" : "CUDA", text, wrong, most);
        return NULL;
    }
    int v = number_of(wrong);
    LEAT_REQUIRE(v < 0 || v >= most, INVALID_ARGUMENT, "LEAT_VISIBLE_DEVICES=%s: %d is there twice",
                 text, v);
    return leat_error(INVALID_ARGUMENT,
                      "LEAT_VISIBLE_DEVICES=%s: \"%.*s\" is not the number of a %s device of this "
                      "machine, which has %d; numbers begin with 0",
                      text, wrong.n, wrong.s, k->type, most);
}

/* ---- The options ---- */

static leat_status from_options(const char *text, const numbers *all, numbers *out)
{
    piece list = {text, (int)strnlen(text, 1 << 20)}, entry;
    while (next_entry(&list, &entry)) {
        bool minus = entry.n > 1 && entry.s[0] == '-';
        int v = number_of(minus ? (piece){entry.s + 1, entry.n - 1} : entry);
        LEAT_REQUIRE(v >= 0, INVALID_ARGUMENT,
                     "Could not parse entry in 'visible_device_list': '%.*s'. visible_device_list "
                     "= %s",
                     entry.n, entry.s, text);
        LEAT_REQUIRE(!minus && v < all->n, INVALID_ARGUMENT,
                     "'visible_device_list' listed an invalid GPU id '%s%d' but visible device "
                     "count is %d",
                     minus ? "-" : "", v, all->n);
        LEAT_REQUIRE(!has(out, all->v[v]), INVALID_ARGUMENT,
                     "visible_device_list contained a duplicate entry: %s", text);
        out->v[out->n++] = all->v[v];
    }
    return NULL;
}

leat_status leat_devices_visible(const leat_device_kind *k, const leat_gpu_options *o, int most,
                                 int **ordinals_out, int *n_out)
{
    numbers all = {.v = leat_new_array(int, most + 1)}, some = all;
    leat_status s = from_environment(k, most, &all);
    if (!s && most && o->visible_devices && o->visible_devices[0]) {
        some = (numbers){.v = leat_new_array(int, all.n + 1)};
        s = from_options(o->visible_devices, &all, &some);
        free(all.v);
        all = some;
    }
    if (s) {
        free(all.v);
        return s;
    }
    *ordinals_out = all.v;
    *n_out = all.n;
    return NULL;
}

/* ---- Memory ---- */

leat_status leat_bytes_read(const char *text, int64_t *bytes_out)
{
    static const char units[] = "kmgt";
    char *end = NULL;
    double v = text && isdigit((unsigned char)*text) ? strtod(text, &end) : -1;
    const char *unit = end && *end ? strchr(units, tolower((unsigned char)*end)) : NULL;
    if (unit) {
        v = ldexp(v, 10 * (int)(unit - units + 1));
        end++;
    }
    LEAT_REQUIRE(end && !*end && v >= 1 && v < 0x1p62, INVALID_ARGUMENT,
                 "\"%s\" is no number of bytes: wants one such as 4096, 64k, 512m, 2g",
                 text ? text : "");
    *bytes_out = (int64_t)v;
    return NULL;
}

static leat_status fraction_of(const leat_gpu_options *o, double *out)
{
    const char *text = getenv("LEAT_GPU_MEMORY_FRACTION");
    char *end = NULL;
    *out = o->memory_fraction;
    if (*out == 0 && text && *text) {
        *out = strtod(text, &end);
        LEAT_REQUIRE(end != text && !*end && *out > 0 && *out <= 1, INVALID_ARGUMENT,
                     "LEAT_GPU_MEMORY_FRACTION=%s: wants a number above 0, and at most 1", text);
    }
    LEAT_REQUIRE(*out >= 0 && *out <= 1, INVALID_ARGUMENT,
                 "A GPU's memory fraction (per_process_gpu_memory_fraction) of %g: wants a number "
                 "above 0, and at most 1",
                 *out);
    return NULL;
}

static leat_status limit_of(const leat_gpu_options *o, int64_t *out)
{
    const char *text = getenv("LEAT_GPU_MEMORY_LIMIT");
    *out = o->memory_limit;
    if (*out == 0 && text && *text)
        return leat_status_prefix(leat_bytes_read(text, out), "LEAT_GPU_MEMORY_LIMIT: ");
    LEAT_REQUIRE(*out >= 0, INVALID_ARGUMENT, "A GPU's memory limit of %lld bytes is negative",
                 (long long)*out);
    return NULL;
}

leat_status leat_device_memory_limit(const leat_device_kind *k, const leat_gpu_options *o,
                                     int ordinal, int64_t *bytes_out)
{
    double fraction;
    int64_t limit;
    leat_device_info info = {0};
    LEAT_TRY(fraction_of(o, &fraction));
    LEAT_TRY(limit_of(o, &limit));
    k->describe(ordinal, &info);
    if (fraction > 0 && info.memory) {
        int64_t part = (int64_t)(fraction * (double)info.memory);
        part = part > 0 ? part : 1;
        limit = limit && limit < part ? limit : part;
    }
    *bytes_out = limit;
    return NULL;
}
