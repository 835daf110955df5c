/* device_spec.c -- the devices of a session in this process or of a server, from a line such as
 * "cpu:2,gpu:1". */
#include <leat/session.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "core/threadpool.h"
#include "runtime/device.h"

enum { MOST_OF_A_KIND = 1024 };

static leat_status read_one(const char *spec, const char *item, size_t n, leat_device_count *out)
{
    const char *colon = memchr(item, ':', n);
    size_t letters = colon ? (size_t)(colon - item) : n;
    LEAT_REQUIRE(letters > 0 && letters < sizeof(out->type), INVALID_ARGUMENT,
                 "Devices \"%s\": \"%.*s\" names no kind; wants KIND:NUMBER, as in cpu:2", spec,
                 (int)n, item);
    for (size_t i = 0; i < letters; i++) {
        LEAT_REQUIRE(isalnum((unsigned char)item[i]) || item[i] == '_', INVALID_ARGUMENT,
                     "Devices \"%s\": \"%.*s\" names no kind; wants KIND:NUMBER, as in cpu:2", spec,
                     (int)n, item);
        out->type[i] = (char)toupper((unsigned char)item[i]);
    }
    out->type[letters] = 0;
    out->n = -1;
    if (!colon)
        return NULL;
    size_t digits = strspn(colon + 1, "0123456789");
    LEAT_REQUIRE(digits > 0 && digits == n - letters - 1, INVALID_ARGUMENT,
                 "Devices \"%s\": \"%.*s\" has no number; wants KIND:NUMBER, as in cpu:2", spec,
                 (int)n, item);
    long count = digits > 6 ? MOST_OF_A_KIND + 1 : strtol(colon + 1, NULL, 10);
    LEAT_REQUIRE(count <= MOST_OF_A_KIND, INVALID_ARGUMENT,
                 "Devices \"%s\": \"%.*s\" are more than %d", spec, (int)n, item, MOST_OF_A_KIND);
    out->n = (int)count;
    return NULL;
}

leat_status leat_device_counts_read(const char *spec, leat_device_count *out, int *n_out)
{
    int count = 0;
    for (const char *at = spec; at && *at;) {
        size_t n = strcspn(at, ",");
        LEAT_REQUIRE(count < LEAT_DEVICE_COUNTS, INVALID_ARGUMENT,
                     "Devices \"%s\": more than %d kinds", spec, LEAT_DEVICE_COUNTS);
        LEAT_TRY(read_one(spec, at, n, &out[count]));
        for (int i = 0; i < count; i++)
            LEAT_REQUIRE(strcmp(out[i].type, out[count].type) != 0, INVALID_ARGUMENT,
                         "Devices \"%s\": %s is there twice", spec, out[i].type);
        count++;
        LEAT_REQUIRE(!at[n] || at[n + 1], INVALID_ARGUMENT,
                     "Devices \"%s\": nothing follows the last comma", spec);
        at += at[n] ? n + 1 : n;
    }
    *n_out = count;
    return NULL;
}

static leat_status unknown_kind(const char *spec, const char *type)
{
    leat_strbuf b = {0};
    for (int i = 0; i < leat_device_kinds(); i++)
        leat_strbuf_printf(&b, "%s%s", i ? ", " : "", leat_device_kind_at(i)->type);
    leat_status s =
        leat_error(INVALID_ARGUMENT, "Devices \"%s\": there are no devices of kind %s, only of %s",
                   spec, type, leat_strbuf_text(&b));
    leat_strbuf_release(&b);
    return s;
}

/* How many devices of which kinds, in the order in which a process has them. */
typedef struct choice {
    const leat_device_kind *kind;
    int n;
    int *ordinals; /* of kinds with is_gpu, from malloc; NULL: 0 to n - 1 */
} choice;

static int ordinal_of(const choice *c, int i)
{
    return c->ordinals ? c->ordinals[i] : i;
}

/* Variables are on a ps; what is computed there are updates, for which it needs no GPU. */
static bool takes_gpus(const leat_devices_options *o)
{
    return strcmp(o->job, "ps") != 0;
}

/* How many devices there are that can be opened; sets c->ordinals. */
static leat_status find_all(choice *c, const leat_devices_options *o, int *most_out)
{
    LEAT_TRY(leat_status_prefix(c->kind->probe(most_out),
                                "%s devices cannot be listed: ", c->kind->type));
    if (!c->kind->is_gpu)
        return NULL;
    return leat_devices_visible(c->kind, &o->gpu, *most_out, &c->ordinals, most_out);
}

/* Sets how many devices of its kind are to be opened, and which. */
static leat_status number_of(choice *c, const leat_devices_options *o,
                             const leat_device_count *counts, int n_counts)
{
    const leat_device_kind *k = c->kind;
    bool host = k == leat_host_kind(), named = false;
    int wanted = -1, most = 0;
    for (int i = 0; i < n_counts; i++)
        if (strcmp(counts[i].type, k->type) == 0) {
            wanted = counts[i].n;
            named = true;
        }
    if (wanted < 0 && host && o->host_devices)
        wanted = o->host_devices;
    LEAT_REQUIRE(!host || wanted == -1 || (wanted > 0 && wanted <= MOST_OF_A_KIND),
                 INVALID_ARGUMENT, "A process has 1 to %d %s devices, not %d", MOST_OF_A_KIND,
                 k->type, wanted);
    if (wanted == 0 || (wanted < 0 && k->by_default == 0) ||
        (!named && k->is_gpu && !takes_gpus(o)))
        return NULL;
    LEAT_TRY(find_all(c, o, &most));
    LEAT_REQUIRE(wanted <= most, NOT_FOUND, "%d %s devices are wanted, and there are %d%s", wanted,
                 k->type, most,
                 k->is_gpu ? " that this process can see (leat devices lists them)" : "");
    c->n = wanted >= 0 ? wanted : k->by_default < 0 ? most : k->by_default;
    return NULL;
}

static leat_status open_kind(const choice *c, const leat_devices_options *o, int threads,
                             leat_devices *d)
{
    d->v = leat_xrealloc(d->v, sizeof(*d->v) * (size_t)(d->n + c->n + 1));
    for (int i = 0; i < c->n; i++) {
        leat_device_choice x = {
            .kind = c->kind, .job = o->job, .task = o->task, .id = i, .ordinal = ordinal_of(c, i)};
        if (c->kind->is_gpu)
            LEAT_TRY(leat_device_memory_limit(c->kind, &o->gpu, x.ordinal, &x.memory_limit));
        LEAT_TRY(leat_device_new(&x, threads, d->pool, &d->v[d->n]));
        d->n++;
    }
    return NULL;
}

static void choices_free(choice *list, int n)
{
    for (int i = 0; i < n; i++)
        free(list[i].ordinals);
    free(list);
}

static leat_status choose(const leat_devices_options *o, choice **out, int *n_out)
{
    leat_device_count counts[LEAT_DEVICE_COUNTS];
    int n_counts = 0, n = 0, n_kinds = leat_device_kinds();
    LEAT_TRY(leat_device_counts_read(o->spec, counts, &n_counts));
    for (int i = 0; i < n_counts; i++)
        if (counts[i].n && !leat_device_kind_find(counts[i].type))
            return unknown_kind(o->spec, counts[i].type);
    choice *list = leat_new_array(choice, n_kinds);
    list[n++].kind = leat_host_kind();
    for (int i = 0; i < n_kinds; i++)
        if (leat_device_kind_at(i) != leat_host_kind())
            list[n++].kind = leat_device_kind_at(i);
    leat_status s = NULL;
    for (int i = 0; i < n && !s; i++)
        s = number_of(&list[i], o, counts, n_counts);
    if (s) {
        choices_free(list, n);
        return s;
    }
    *out = list;
    *n_out = n;
    return NULL;
}

static int inter_threads(const leat_devices_options *o)
{
    return o->inter_op_threads ? o->inter_op_threads : leat_default_threads();
}

leat_status leat_devices_add(const leat_devices_options *o, leat_devices *d)
{
    choice *kinds;
    int n_kinds, intra = o->intra_op_threads ? o->intra_op_threads : inter_threads(o);
    LEAT_TRY(choose(o, &kinds, &n_kinds));
    leat_status s = NULL;
    for (int i = 0; i < n_kinds && !s; i++)
        s = open_kind(&kinds[i], o, intra, d);
    choices_free(kinds, n_kinds);
    return s;
}

leat_status leat_devices_open(const leat_devices_options *o, leat_devices *out)
{
    LEAT_REQUIRE(o->intra_op_threads >= 0 && o->inter_op_threads >= 0, INVALID_ARGUMENT,
                 "Thread counts cannot be negative: intra %d, inter %d", o->intra_op_threads,
                 o->inter_op_threads);
    LEAT_REQUIRE(o->host_devices >= 0, INVALID_ARGUMENT, "A process has 1 to %d %s devices, not %d",
                 MOST_OF_A_KIND, leat_host_kind()->type, o->host_devices);
    leat_devices d = {.pool = leat_pool_new(inter_threads(o) - 1, "leat")};
    leat_status s = leat_devices_add(o, &d);
    if (s) {
        leat_devices_close(&d);
        return s;
    }
    *out = d;
    return NULL;
}

/* Devices are closed before the pool: a device whose event comes hands work to the pool. */
void leat_devices_close(leat_devices *d)
{
    for (int i = 0; i < d->n; i++)
        leat_device_close(d->v[i]);
    leat_pool_free(d->pool);
    free(d->v);
    *d = (leat_devices){0};
}

leat_status leat_devices_list(const char *devices, leat_device_listing **out, int *n_out)
{
    leat_devices_options o = {.spec = devices, .job = "localhost"};
    choice *kinds;
    int n_kinds, n = 0;
    LEAT_TRY(choose(&o, &kinds, &n_kinds));
    for (int i = 0; i < n_kinds; i++)
        n += kinds[i].n;
    leat_device_listing *list = leat_new_array(leat_device_listing, n + 1), *x = list;
    for (int i = 0; i < n_kinds; i++)
        for (int id = 0; id < kinds[i].n; id++, x++) {
            leat_device_name name = {.job = "localhost", .id = id};
            leat_device_info info = {0};
            snprintf(name.type, sizeof(name.type), "%s", kinds[i].kind->type);
            snprintf(x->kind, sizeof(x->kind), "%s", name.type);
            leat_device_name_text(&name, x->name, sizeof(x->name));
            x->ordinal = ordinal_of(&kinds[i], id);
            kinds[i].kind->describe(x->ordinal, &info);
            snprintf(x->description, sizeof(x->description), "%s", info.description);
            x->memory = info.memory;
        }
    choices_free(kinds, n_kinds);
    *out = list;
    *n_out = n;
    return NULL;
}
