/* kernel_registry.c -- all kernels by op and kind of device, and the choice among them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/map.h"
#include "core/strbuf.h"
#include "runtime/kernel_int.h"

/* The kernels of one op on one kind of device. */
typedef struct family {
    const leat_kernel_def **list;
    int n, cap;
} family;

static struct {
    pthread_mutex_t lock; /* guards all below; the lock of the registry of ops is taken under it */
    leat_map families;    /* "CPU/Relu" -> family */
    bool ready;
} reg = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void key_of(const char *device_type, const char *op, char *buf, size_t n)
{
    snprintf(buf, n, "%s/%s", device_type, op);
}

static void add(const char *device_type, const leat_kernel_def *def)
{
    char key[128];
    key_of(device_type, def->op, key, sizeof(key));
    family *f = leat_map_get(&reg.families, key);
    if (!f) {
        f = leat_new(family);
        leat_map_put(&reg.families, key, f);
    }
    leat_grow(f->list, f->n, f->cap);
    f->list[f->n++] = def;
}

static void add_lists(const char *device_type, const leat_kernel_def *const *lists)
{
    for (int i = 0; lists[i]; i++)
        for (const leat_kernel_def *d = lists[i]; d->op; d++)
            add(device_type, d);
}

static void add_kind(const leat_device_kind *kind)
{
    add_lists(kind->type, kind->kernels());
    add_lists(kind->type, leat_any_kernel_lists);
}

static void make_ready(void)
{
    if (reg.ready)
        return;
    reg.ready = true;
    for (int i = 0; i < leat_device_kinds(); i++)
        add_kind(leat_device_kind_at(i));
}

void leat_kernels_add_kind(const leat_device_kind *kind)
{
    pthread_mutex_lock(&reg.lock);
    make_ready();
    add_kind(kind);
    pthread_mutex_unlock(&reg.lock);
}

static bool serves_floats(const leat_kernel_def *d)
{
    for (int i = 0; i < 3 && d->where[i].attr; i++)
        if (d->where[i].types & (LEAT_T(FLOAT) | LEAT_T(DOUBLE)))
            return true;
    return false;
}

static bool has_family(const char *device_type, const char *op)
{
    char key[128];
    key_of(device_type, op, key, sizeof(key));
    return leat_map_get(&reg.families, key) != NULL;
}

/* Passes fuse ops by what their definitions say, where the device has kernels of fused ops: these
 * need row functions and rules of the kernels of single ops. */
static leat_status check_fusable(const char *device_type, const leat_kernel_def *d)
{
    const leat_op_info *op = leat_op_find(d->op);
    if (!serves_floats(d))
        return NULL;
    LEAT_REQUIRE(!(op->def->flags & LEAT_OP_CWISE) || d->flags & LEAT_KERNEL_ROWS ||
                     !has_family(device_type, "_FusedCwise"),
                 INVALID_ARGUMENT,
                 "Op %s is LEAT_OP_CWISE: its kernel for %s must be LEAT_KERNEL_ROWS", d->op,
                 device_type);
    LEAT_REQUIRE(!op->gradient || d->rule || !has_family(device_type, "_FusedApply"),
                 INVALID_ARGUMENT, "Op %s applies a gradient: its kernel for %s must have a rule",
                 d->op, device_type);
    return NULL;
}

leat_status leat_register_kernels(const char *device_type, const leat_kernel_def *kernels, int n)
{
    for (int i = 0; i < n; i++) {
        LEAT_REQUIRE(kernels[i].op && leat_op_find(kernels[i].op), NOT_FOUND,
                     "A kernel is for op '%s', which is not registered",
                     kernels[i].op ? kernels[i].op : "");
        LEAT_REQUIRE(!kernels[i].run != !kernels[i].run_async, INVALID_ARGUMENT,
                     "A kernel of %s must have one of run and run_async", kernels[i].op);
    }
    pthread_mutex_lock(&reg.lock);
    make_ready();
    leat_status s = NULL;
    for (int i = 0; i < n && !s; i++)
        s = check_fusable(device_type, &kernels[i]);
    for (int i = 0; i < n && !s; i++)
        add(device_type, &kernels[i]);
    pthread_mutex_unlock(&reg.lock);
    return s;
}

/* The types that a type or list(type) attribute of n holds are all in the set. */
static bool attr_fits(const leat_node *n, const char *attr, leat_types set, bool small_as_float)
{
    const leat_attr *a = leat_node_attr(n, attr);
    if (!a)
        return false;
    for (int i = 0; i < (a->kind == LEAT_ARG_TYPES ? a->n : 1); i++) {
        leat_dtype t = leat_dtype_base(a->kind == LEAT_ARG_TYPES ? a->types[i] : (leat_dtype)a->i);
        if (small_as_float && (t == LEAT_HALF || t == LEAT_BFLOAT16))
            t = LEAT_FLOAT;
        if (!leat_types_has(set, t))
            return false;
    }
    return true;
}

static bool fits(const leat_kernel_def *d, const leat_node *n, bool small_as_float)
{
    for (int i = 0; i < 3 && d->where[i].attr; i++)
        if (!attr_fits(n, d->where[i].attr, d->where[i].types, small_as_float))
            return false;
    return true;
}

static leat_status none_found(const leat_node *n, const char *device_type, const family *f)
{
    leat_strbuf b = {0};
    for (int i = 0; i < n->n_attrs; i++)
        if (n->attrs[i].kind == LEAT_ARG_TYPE)
            leat_strbuf_printf(&b, "%s%s=%s", b.n ? ", " : "", n->attrs[i].name,
                               leat_dtype_name((leat_dtype)n->attrs[i].i));
    leat_status s = leat_error(
        NOT_FOUND,
        "No OpKernel was registered to support Op '%s' used by {{node %s}} with these attrs: [%s]. "
        "Registered for device %s: %d kernels of this op%s",
        n->op->def->name, n->name, leat_strbuf_text(&b), device_type, f ? f->n : 0,
        f ? ", for other types" : "");
    leat_strbuf_release(&b);
    return s;
}

leat_status leat_kernel_find(const leat_node *n, const char *device_type,
                             const leat_kernel_def **out, bool *via_float_out)
{
    char key[128];
    key_of(device_type, n->op->def->name, key, sizeof(key));
    pthread_mutex_lock(&reg.lock);
    make_ready();
    family *f = leat_map_get(&reg.families, key);
    const leat_kernel_def *found = NULL;
    bool via_float = false;
    for (int i = 0; f && i < f->n && !found; i++)
        if (fits(f->list[i], n, false))
            found = f->list[i];
    for (int i = 0; f && i < f->n && !found; i++)
        if (f->list[i]->flags & LEAT_KERNEL_VIA_FLOAT && fits(f->list[i], n, true)) {
            found = f->list[i];
            via_float = true;
        }
    pthread_mutex_unlock(&reg.lock);
    if (!found)
        return none_found(n, device_type, f);
    *out = found;
    *via_float_out = via_float;
    return NULL;
}

/* Whether the kernel can reach memory that outlives the step. */
static bool takes_state(const leat_node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        const leat_dtype t = leat_out_dtype(n->in[i]);
        if (leat_dtype_is_ref(t) || t == LEAT_RESOURCE)
            return true;
    }
    return false;
}

leat_status leat_kernel_bind(leat_bound *b, const leat_node *n, const char *device_type)
{
    leat_bound x = {.node = n, .holds_state = takes_state(n)};
    LEAT_TRY(leat_kernel_find(n, device_type, &x.def, &x.via_float));
    if (x.def->state_size)
        x.state = leat_xcalloc(1, x.def->state_size);
    leat_status s = x.def->init ? x.def->init(n, x.state) : NULL;
    if (s) {
        free(x.state);
        return leat_status_suffix(s, "\n\t [[{{node %s}}]]", n->name);
    }
    const leat_device_kind *kind = leat_device_kind_find(device_type);
    if (kind && !kind->host_memory) {
        x.places = leat_xcalloc((size_t)(n->n_in + n->n_out) + 1, 1);
        leat_kernel_places(x.def, n, x.places);
    }
    *b = x;
    return NULL;
}

void leat_kernel_unbind(leat_bound *b)
{
    if (b->def && b->def->release)
        b->def->release(b->state);
    leat_note *note = atomic_load(&b->note);
    if (note)
        note->free(note);
    free(b->state);
    free(b->places);
    *b = (leat_bound){0};
}

leat_note *leat_kernel_note(leat_kernel *k, leat_note *(*make)(const leat_node *n))
{
    leat_bound *b = (leat_bound *)k->bound;
    leat_note *note = atomic_load_explicit(&b->note, memory_order_acquire);
    if (note)
        return note;
    leat_note *made = make(b->node);
    if (atomic_compare_exchange_strong(&b->note, &note, made))
        return made;
    made->free(made); /* Another run of the kernel was faster. */
    return note;
}

static leat_status check_one(const leat_kernel_def *d)
{
    const leat_op_info *op = leat_op_find(d->op);
    LEAT_REQUIRE(op, INTERNAL, "A kernel is for op '%s', which is not registered", d->op);
    LEAT_REQUIRE(!d->run != !d->run_async, INTERNAL, "A kernel of %s needs run or run_async",
                 d->op);
    for (int i = 0; i < 3 && d->where[i].attr; i++)
        LEAT_REQUIRE(leat_op_attr_index(op, d->where[i].attr) >= 0, INTERNAL,
                     "A kernel of %s asks for attr '%s', which the op lacks", d->op,
                     d->where[i].attr);
    LEAT_REQUIRE(op->def->flags & LEAT_OP_CWISE || !(d->flags & LEAT_KERNEL_ROWS) ||
                     !serves_floats(d) || !leat_op_is_like_cwise(op),
                 INTERNAL, "Op %s has a kernel of rows: its definition must say LEAT_OP_CWISE",
                 d->op);
    return leat_kernel_places_check(d);
}

static bool overlap(const leat_kernel_def *a, const leat_kernel_def *b)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            if (a->where[i].attr && b->where[j].attr &&
                strcmp(a->where[i].attr, b->where[j].attr) == 0 &&
                !(a->where[i].types & b->where[j].types))
                return false;
    return true;
}

leat_status leat_kernel_registry_check(void)
{
    pthread_mutex_lock(&reg.lock);
    make_ready();
    size_t i = 0;
    const char *key;
    void *value;
    leat_status s = NULL;
    while (!s && leat_map_next(&reg.families, &i, &key, &value)) {
        family *f = value;
        char type[64];
        snprintf(type, sizeof(type), "%.*s", (int)strcspn(key, "/"), key);
        for (int a = 0; a < f->n && !s; a++) {
            s = check_one(f->list[a]);
            if (!s)
                s = check_fusable(type, f->list[a]);
            for (int b = a + 1; b < f->n && !s; b++)
                if (overlap(f->list[a], f->list[b]))
                    s = leat_error(INTERNAL, "Two kernels serve %s for the same types", key);
        }
    }
    pthread_mutex_unlock(&reg.lock);
    return s;
}
