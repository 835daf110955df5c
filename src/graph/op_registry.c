/* op_registry.c -- all ops by name. Filled on first use from the lists in src/ops/list.c;
 * leat_register_op adds users' ops. A definition is parsed when it is first looked up. */
#include <pthread.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arena.h"
#include "core/map.h"
#include "graph/op_info.h"

typedef struct entry {
    const leat_op_def *def;
    leat_op_info *info; /* NULL until parsed */
} entry;

static struct {
    pthread_mutex_t lock; /* guards the following fields; no other lock is taken under it */
    leat_arena arena;
    leat_map by_name; /* -> entry */
    entry **list;
    int n, cap;
    bool ready;
    leat_status broken; /* an error in one of Leat's own definitions */
} reg = {.lock = PTHREAD_MUTEX_INITIALIZER};

static leat_status add(const leat_op_def *def)
{
    LEAT_REQUIRE(def->name && def->name[0], INVALID_ARGUMENT, "An op needs a name");
    LEAT_REQUIRE(!leat_map_get(&reg.by_name, def->name), ALREADY_EXISTS,
                 "Op %s is registered twice", def->name);
    LEAT_REQUIRE(def->shape, INVALID_ARGUMENT, "Op %s has no shape function", def->name);
    LEAT_REQUIRE(def->grad, INVALID_ARGUMENT,
                 "Op %s says nothing of its gradient: leat_grad_none and leat_grad_missing do",
                 def->name);
    entry *e = leat_arena_new(&reg.arena, entry);
    e->def = def;
    leat_map_put(&reg.by_name, def->name, e);
    leat_grow(reg.list, reg.n, reg.cap);
    reg.list[reg.n++] = e;
    return NULL;
}

static void make_ready(void)
{
    if (reg.ready)
        return;
    reg.ready = true;
    leat_arena_init(&reg.arena);
    for (int i = 0; leat_op_lists[i]; i++)
        for (const leat_op_def *d = leat_op_lists[i]; d->name; d++)
            reg.broken = leat_status_first(reg.broken, add(d));
}

static leat_op_info *parsed(entry *e)
{
    if (!e->info)
        reg.broken = leat_status_first(reg.broken, leat_op_parse(&reg.arena, e->def, &e->info));
    return e->info;
}

const leat_op_info *leat_op_find(const char *name)
{
    pthread_mutex_lock(&reg.lock);
    make_ready();
    entry *e = leat_map_get(&reg.by_name, name);
    leat_op_info *info = e ? parsed(e) : NULL;
    pthread_mutex_unlock(&reg.lock);
    return info;
}

int leat_op_count(void)
{
    pthread_mutex_lock(&reg.lock);
    make_ready();
    int n = reg.n;
    pthread_mutex_unlock(&reg.lock);
    return n;
}

const leat_op_info *leat_op_at_index(int i)
{
    pthread_mutex_lock(&reg.lock);
    make_ready();
    leat_op_info *info = i >= 0 && i < reg.n ? parsed(reg.list[i]) : NULL;
    pthread_mutex_unlock(&reg.lock);
    return info;
}

/* Checks the ops that save and restore a position: the handle comes first, and what one gives is
 * what the other takes. */
static leat_status check_position_ops(const leat_op_def *def)
{
    entry *to = leat_map_get(&reg.by_name, def->save_position);
    entry *from = leat_map_get(&reg.by_name, def->restore_position);
    const leat_op_info *save = to ? parsed(to) : NULL, *restore = from ? parsed(from) : NULL;
    LEAT_REQUIRE(save && save->n_in == 1 && save->in[0].type == LEAT_RESOURCE && save->n_out == 1 &&
                     save->out[0].type,
                 INVALID_ARGUMENT,
                 "The position of op %s is saved by %s, which is not an op from a resource to a "
                 "value of one type",
                 def->name, def->save_position);
    LEAT_REQUIRE(restore && restore->n_in == 2 && restore->in[0].type == LEAT_RESOURCE &&
                     restore->in[1].type == save->out[0].type,
                 INVALID_ARGUMENT,
                 "The position of op %s is restored by %s, which does not take a resource and what "
                 "%s gives",
                 def->name, def->restore_position, def->save_position);
    return NULL;
}

/* Checks that the other ops which a definition names exist. */
static leat_status check_others(const leat_op_def *def)
{
    const entry *fused = def->fused ? leat_map_get(&reg.by_name, def->fused) : NULL;
    LEAT_REQUIRE(!def->fused || fused, INVALID_ARGUMENT,
                 "Op %s names the fused op %s, which is not registered", def->name, def->fused);
    entry *pair = def->pairwise ? leat_map_get(&reg.by_name, def->pairwise) : NULL;
    const leat_op_info *info = pair ? parsed(pair) : NULL;
    LEAT_REQUIRE(!def->pairwise || (info && info->n_in == 2 && info->def->flags & LEAT_OP_CWISE),
                 INVALID_ARGUMENT,
                 "Op %s is done in pairs by %s, which is not an element-wise op of two operands",
                 def->name, def->pairwise);
    return def->save_position ? check_position_ops(def) : NULL;
}

leat_status leat_register_op(const leat_op_def *op)
{
    leat_arena scratch;
    leat_arena_init(&scratch);
    leat_op_info *info;
    leat_status s = leat_op_parse(&scratch, op, &info);
    leat_arena_release(&scratch);
    if (s)
        return s;
    LEAT_REQUIRE(op->role < LEAT_ROLE_ARG || op->role > LEAT_ROLE_RECV, INVALID_ARGUMENT,
                 "Op %s has a role that belongs to ops of the runtime", op->name);
    pthread_mutex_lock(&reg.lock);
    make_ready();
    s = check_others(op);
    if (!s)
        s = add(op);
    pthread_mutex_unlock(&reg.lock);
    return s;
}

leat_status leat_op_registry_check(void)
{
    for (int i = 0, n = leat_op_count(); i < n; i++)
        leat_op_at_index(i);
    pthread_mutex_lock(&reg.lock);
    for (int i = 0; i < reg.n; i++)
        reg.broken = leat_status_first(reg.broken, check_others(reg.list[i]->def));
    leat_status s = leat_status_copy(reg.broken);
    pthread_mutex_unlock(&reg.lock);
    return s;
}
