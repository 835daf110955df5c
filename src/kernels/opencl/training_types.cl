/* training_types.cl -- stands before training_rules.inc, whose rules are written for arrays of T,
 * and which is compiled here for elements that a work item holds for itself. */
#define T float
#define RULE(name) name##_rule
#define SQRT sqrt
#define POW pow
#define EXP exp
#define int64_t long
