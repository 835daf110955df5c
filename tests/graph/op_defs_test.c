/* op_defs_test.c -- the registries are sound, and every op is defined as in TensorFlow 1.15. The
 * definitions to compare with are in op_defs.txt, which make_op_defs.py writes from TensorFlow's
 * registry: "Sum(input:T, reduction_indices:Tidx) -> output:T {keep_dims:bool=False; ...} SC". */
#include "test.h"

#include "core/strbuf.h"
#include "graph/graph_int.h"
#include "runtime/kernel_int.h"

static void registries(void)
{
    CHECK_OK(leat_op_registry_check());
    CHECK_OK(leat_kernel_registry_check());
    CHECK(leat_op_count() > 250);
    printf("%d ops\n", leat_op_count());
}

static void show_args(leat_strbuf *b, const leat_op_info *op, const leat_arg_info *a, int n)
{
    for (int i = 0; i < n; i++) {
        const char *type = a[i].type_attr >= 0   ? op->attrs[a[i].type_attr].name
                           : a[i].list_attr >= 0 ? op->attrs[a[i].list_attr].name
                                                 : leat_dtype_name(a[i].type);
        leat_strbuf_printf(b, "%s%s:%s", i ? ", " : "", a[i].name, a[i].is_ref ? "Ref(" : "");
        if (a[i].number_attr >= 0)
            leat_strbuf_printf(b, "%s*", op->attrs[a[i].number_attr].name);
        leat_strbuf_printf(b, a[i].list_attr >= 0 ? "list(%s)" : "%s", type);
        leat_strbuf_puts(b, a[i].is_ref ? ")" : "");
    }
}

static const char *const kind_names[] = {
    [LEAT_ARG_INT] = "int",
    [LEAT_ARG_BOOL] = "bool",
    [LEAT_ARG_FLOAT] = "float",
    [LEAT_ARG_TYPE] = "type",
    [LEAT_ARG_STRING] = "string",
    [LEAT_ARG_SHAPE] = "shape",
    [LEAT_ARG_TENSOR] = "tensor",
    [LEAT_ARG_FUNC] = "func",
    [LEAT_ARG_INTS] = "list(int)",
    [LEAT_ARG_TYPES] = "list(type)",
    [LEAT_ARG_SHAPES] = "list(shape)",
    [LEAT_ARG_STRINGS] = "list(string)",
    [LEAT_ARG_FLOATS] = "list(float)",
    [LEAT_ARG_BOOLS] = "list(bool)",
    [LEAT_ARG_TENSORS] = "list(tensor)",
    [LEAT_ARG_FUNCS] = "list(func)",
};

static void show_default(leat_strbuf *b, const leat_attr *v)
{
    leat_strbuf_putc(b, '=');
    switch (v->kind) {
    case LEAT_ARG_INT:
        leat_strbuf_printf(b, "%lld", (long long)v->i);
        break;
    case LEAT_ARG_BOOL:
        leat_strbuf_puts(b, v->i ? "True" : "False");
        break;
    case LEAT_ARG_FLOAT:
        leat_strbuf_printf(b, "%.17g", v->f);
        break;
    case LEAT_ARG_TYPE:
        leat_strbuf_puts(b, leat_dtype_name((leat_dtype)v->i));
        break;
    case LEAT_ARG_STRING:
        leat_strbuf_printf(b, "'%s'",
                           strcmp(v->s, "\n") == 0   ? "\\n"
                           : strcmp(v->s, "\t") == 0 ? "\\t"
                                                     : v->s);
        break;
    case LEAT_ARG_SHAPE:
        leat_strbuf_puts(b, v->shape->rank < 0 ? "unknown" : "[]");
        break;
    case LEAT_ARG_TENSOR:
        leat_strbuf_puts(b, leat_dtype_name(leat_tensor_dtype(v->tensor)));
        for (int64_t i = 0; i < leat_tensor_count(v->tensor); i++)
            leat_strbuf_printf(b, " %g", leat_tensor_at(v->tensor, i));
        break;
    default:
        leat_strbuf_putc(b, '[');
        for (int i = 0; i < v->n; i++) {
            leat_strbuf_puts(b, i ? ", " : "");
            if (v->kind == LEAT_ARG_INTS)
                leat_strbuf_printf(b, "%lld", (long long)v->ints[i]);
            else if (v->kind == LEAT_ARG_FLOATS)
                leat_strbuf_printf(b, "%.17g", v->floats[i]);
            else if (v->kind == LEAT_ARG_TYPES)
                leat_strbuf_puts(b, leat_dtype_name(v->types[i]));
            else if (v->kind == LEAT_ARG_STRINGS)
                leat_strbuf_printf(b, "'%s'", v->strings[i]);
        }
        leat_strbuf_putc(b, ']');
    }
}

/* The facts' way of writing floats is Python's: compare values, not spellings. Numbers in lists are
 * floats in the facts and doubles here. */
static int same_default(const char *ours, const char *theirs)
{
    char *end;
    double x = strtod(theirs + 1, &end);
    if (strcmp(ours, theirs) == 0 ||
        (end != theirs + 1 && *end == 0 && x == strtod(ours + 1, NULL)))
        return 1;
    if (strncmp(ours, "=[", 2) != 0 || strncmp(theirs, "=[", 2) != 0)
        return 0;
    for (ours += 2, theirs += 2; *theirs;
         ours += strspn(ours, ", ]"), theirs += strspn(theirs, ", ]")) {
        char *next;
        const float want = strtof(theirs, &end), got = strtof(ours, &next);
        if (end == theirs || next == ours || want != got)
            return 0;
        theirs = end;
        ours = next;
    }
    return *ours == 0;
}

/* Compares "type in ['half', 'float']>=1=float" with what we have. */
static int same_attr(const leat_attr_info *a, char *text)
{
    size_t kind_n = strlen(kind_names[a->kind]);
    if (strncmp(text, kind_names[a->kind], kind_n) != 0)
        return 0;
    text += kind_n;
    int count = 0;
    if (strncmp(text, " in [", 5) == 0) {
        leat_types set = 0;
        for (text += 5; *text != ']';) {
            char name[64] = "";
            int n = 0;
            if (strncmp(text, "''", 2) == 0)
                n = 2;
            else if (sscanf(text, "'%63[^']'%n", name, &n) != 1 || !n)
                return 0;
            text += n + (text[n] == ',') + (text[n] == ',' && text[n + 1] == ' ');
            leat_dtype t = leat_dtype_parse(name);
            if (a->n_strings) {
                int found = 0;
                for (int i = 0; i < a->n_strings; i++)
                    found |= strcmp(a->strings[i], name) == 0;
                if (!found)
                    return 0;
                count++;
            } else if (t) {
                set |= UINT64_C(1) << t;
            }
        }
        text++;
        if (a->n_strings ? count != a->n_strings : set != a->types)
            return 0;
    } else if ((a->kind == LEAT_ARG_TYPE || a->kind == LEAT_ARG_TYPES) &&
               a->types != LEAT_TYPES_ANY) {
        return 0;
    }
    if (strncmp(text, ">=", 2) == 0) {
        /* TensorFlow 2 takes ragged tensors without splits, too. */
        const int64_t lowered =
            strcmp(a->name, "RAGGED_RANK") == 0 || strcmp(a->name, "output_ragged_rank") == 0;
        const int64_t least = strtoll(text + 2, &text, 10);
        if (!a->has_min || (least != a->min && least != a->min + lowered))
            return 0;
    } else if (a->has_min) {
        return 0;
    }
    leat_strbuf b = {0};
    if (a->fallback)
        show_default(&b, a->fallback);
    int same = a->fallback ? *text && same_default(leat_strbuf_text(&b), text) : !*text;
    leat_strbuf_release(&b);
    return same;
}

/* Cuts "a; b; c" at the semicolons that stand between attributes. */
static char *next_attr(char **p)
{
    if (!**p)
        return NULL;
    char *begin = *p, *end = strstr(begin, "; ");
    *p = end ? end + 2 : begin + strlen(begin);
    if (end)
        *end = 0;
    return begin;
}

static void differs(const leat_op_info *op, const char *what, const char *theirs)
{
    test_failures++;
    printf("%s: %s differs from TensorFlow's %s\n", op->def->name, what, theirs);
}

static void compare(const leat_op_info *op, char *line)
{
    char *args = strchr(line, '(') + 1, *arrow = strstr(line, ") -> "), *outs = arrow + 5;
    *arrow = 0;
    char *attrs = strstr(outs, " {"), *flags = attrs ? strrchr(outs, '}') + 1 : NULL;
    if (!attrs) {
        flags = outs;
        for (char *p = outs; (p = strchr(p, ' ')); p++)
            if (strspn(p + 1, "SCAU") == strlen(p + 1))
                flags = p;
        if (flags == outs)
            flags = outs + strlen(outs);
    }
    char *flag_text = strdup(flags);
    if (attrs) {
        *attrs = 0;
        attrs += 2;
        flags[-1] = 0;
    } else {
        *flags = 0;
    }
    leat_strbuf b = {0};
    show_args(&b, op, op->in, op->n_in);
    if (strcmp(leat_strbuf_text(&b), args) != 0)
        differs(op, leat_strbuf_text(&b), args);
    leat_strbuf_clear(&b);
    show_args(&b, op, op->out, op->n_out);
    if (strcmp(op->n_out ? leat_strbuf_text(&b) : "()", outs) != 0)
        differs(op, leat_strbuf_text(&b), outs);
    leat_strbuf_release(&b);
    int n = 0;
    char *p = attrs ? attrs : (char[]){0};
    for (char *a; (a = next_attr(&p)); n++) {
        char *colon = strchr(a, ':');
        *colon = 0;
        int i = leat_op_attr_index(op, a);
        if (i < 0 || !same_attr(&op->attrs[i], colon + 1)) {
            *colon = ':';
            differs(op, "an attribute", a);
        }
    }
    if (n != op->n_attrs)
        differs(op, "the number of attributes", "");
    unsigned want = (strchr(flag_text, 'S') ? LEAT_OP_STATEFUL : 0) |
                    (strchr(flag_text, 'C') ? LEAT_OP_COMMUTATIVE : 0) |
                    (strchr(flag_text, 'A') ? LEAT_OP_AGGREGATE : 0) |
                    (strchr(flag_text, 'U') ? LEAT_OP_UNINITIALIZED : 0);
    const unsigned theirs = LEAT_OP_STATEFUL | LEAT_OP_COMMUTATIVE | LEAT_OP_AGGREGATE |
                            LEAT_OP_UNINITIALIZED; /* the flags that TensorFlow has, too */
    if (want != (op->def->flags & theirs))
        differs(op, "flags", flag_text);
    free(flag_text);
}

/* Ops that TensorFlow 2 added, and that its clients use where those of 1.15 used others. */
static bool is_later(const char *name)
{
    static const char *const later[] = {"DecodeImage",
                                        "ParseExampleV2",
                                        "ParallelMapDatasetV2",
                                        "ParallelBatchDataset",
                                        "ParallelInterleaveDatasetV3",
                                        "ParallelInterleaveDatasetV4",
                                        "LegacyParallelInterleaveDatasetV2",
                                        "RewriteDataset",
                                        "OptionsDataset",
                                        "FinalizeDataset",
                                        "OptimizeDatasetV2",
                                        "AssertCardinalityDataset",
                                        "RebatchDatasetV2",
                                        "CSVDatasetV2",
                                        "ParseExampleDatasetV2"};
    for (size_t i = 0; i < sizeof(later) / sizeof(*later); i++)
        if (strcmp(name, later[i]) == 0)
            return true;
    return false;
}

static void as_in_tensorflow(void)
{
    FILE *f = fopen(LEAT_SOURCE_DIR "/tests/graph/op_defs.txt", "r");
    CHECK(f);
    if (!f)
        return;
    static char line[65536];
    bool *compared = calloc((size_t)leat_op_count(), sizeof(*compared));
    while (fgets(line, sizeof(line), f)) {
        char name[128];
        line[strcspn(line, "\n")] = 0;
        if (sscanf(line, "%127[A-Za-z0-9_](", name) != 1 || !strstr(line, ") -> "))
            continue;
        const leat_op_info *op = leat_op_find(name);
        for (int i = 0; op && i < leat_op_count(); i++)
            compared[i] |= leat_op_at_index(i) == op;
        if (op)
            compare(op, line);
    }
    fclose(f);
    for (int i = 0; i < leat_op_count(); i++) {
        const char *name = leat_op_at_index(i)->def->name;
        if (compared[i] || name[0] == '_' || is_later(name))
            continue;
        test_failures++;
        printf("%s is not in op_defs.txt: run make_op_defs.py; TensorFlow 1.15 may lack it\n",
               name);
    }
    free(compared);
}

int main(int argc, char **argv)
{
    for (int i = 0; argc == 2 && strcmp(argv[1], "--names") == 0; i++) { /* for make_op_defs.py */
        if (i == leat_op_count())
            return 0;
        printf("%s\n", leat_op_at_index(i)->def->name);
    }
    return RUN(argc, argv, {"registries", registries}, {"as_in_tensorflow", as_in_tensorflow});
}
