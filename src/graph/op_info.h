/* op_info.h -- op definitions, parsed, and the registry that holds them. */
#ifndef LEAT_OP_INFO_H
#define LEAT_OP_INFO_H

#include <leat/extend.h>

typedef struct leat_attr leat_attr;

/* An input or output argument. Exactly one of type, type_attr, list_attr says what it holds. */
typedef struct leat_arg_info {
    const char *name;
    leat_dtype type; /* fixed, or 0 */
    int type_attr;   /* index of the attribute that holds its dtype, or -1 */
    int number_attr; /* index of the attribute that holds its length, or -1: a single tensor */
    int list_attr;   /* index of the list(type) attribute, or -1 */
    bool is_ref;
} leat_arg_info;

typedef struct leat_attr_info {
    const char *name;
    int kind;             /* a LEAT_ARG_ kind */
    leat_types types;     /* allowed dtypes, of type and list(type) */
    const char **strings; /* allowed strings, or NULL */
    int n_strings;
    bool has_min;
    int64_t min;         /* least value of an int, least length of a list */
    bool inferred;       /* follows from an input */
    leat_attr *fallback; /* the default, or NULL: must be given */
} leat_attr_info;

typedef struct leat_op_info {
    const leat_op_def *def;
    leat_arg_info *in, *out;
    leat_attr_info *attrs;
    int n_in, n_out, n_attrs;
    bool own; /* the library's, not a program's */
} leat_op_info;

/* The op of this name, or NULL. Thread-safe; what it gives lives for ever. */
const leat_op_info *leat_op_find(const char *name);
int leat_op_count(void);
const leat_op_info *leat_op_at_index(int i);
int leat_op_attr_index(const leat_op_info *op, const char *name); /* -1 if it has none */
struct leat_arena;
leat_status leat_op_parse(struct leat_arena *a, const leat_op_def *def,
                          leat_op_info **out) LEAT_MUST_CHECK;
/* What is wrong with the registered definitions, if anything: spelling, no shape function, no word
 * on the gradient, duplicates. */
leat_status leat_op_registry_check(void) LEAT_MUST_CHECK;

/* src/ops/list.c: NULL-ended; each entry is an array of definitions that ends with a NULL name. */
extern const leat_op_def *const leat_op_lists[];

#endif
