/* op_info.h -- op definitions, parsed, and the registry that holds them. */
#ifndef LEAT_OP_INFO_H
#define LEAT_OP_INFO_H

#include <leat/extend.h>

typedef struct leat_attr leat_attr;

/* An input or output argument. Exactly one of type, type_attr and list_attr gives its dtype. */
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
    int64_t min;         /* least value of an int, or least length of a list */
    bool inferred;       /* determined by an input */
    leat_attr *fallback; /* the default value; NULL: must be given */
} leat_attr_info;

typedef struct leat_op_info {
    const leat_op_def *def;
    leat_arg_info *in, *out;
    leat_attr_info *attrs;
    int n_in, n_out, n_attrs;
    /* Index of the input that def->gradient names; 0: none, because input 0 is a variable. */
    int gradient;
} leat_op_info;

/* The op of this name, or NULL. Thread-safe; the result is never freed. */
const leat_op_info *leat_op_find(const char *name);
int leat_op_count(void);
const leat_op_info *leat_op_at_index(int i);
int leat_op_attr_index(const leat_op_info *op, const char *name); /* -1 if it has none */
struct leat_arena;
leat_status leat_op_parse(struct leat_arena *a, const leat_op_def *def,
                          leat_op_info **out) LEAT_MUST_CHECK;
/* op_check.c: checks that flags, role and further fields of a definition agree with its inputs,
 * outputs and attributes. Sets op->gradient. */
leat_status leat_op_check(leat_op_info *op) LEAT_MUST_CHECK;
/* Whether inputs, outputs and attributes are those of an element-wise op of one or two operands. */
bool leat_op_is_like_cwise(const leat_op_info *op);
/* An error if a registered definition is wrong: spelling, no shape function, no gradient and none
 * declared missing, duplicates, properties that do not fit, names of ops that do not exist. */
leat_status leat_op_registry_check(void) LEAT_MUST_CHECK;

/* src/ops/list.c: a list that ends with NULL; each entry is an array of definitions that ends with
 * a NULL name. */
extern const leat_op_def *const leat_op_lists[];

#endif
