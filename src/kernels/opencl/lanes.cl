/* lanes.cl -- some neighbouring channels at a time: LANES, a vector on a CPU, one on a GPU. */
#ifdef LEAT_ON_CPU
enum { LANES = 16 };
typedef float16 lanes;
typedef int16 choice;
#else
enum { LANES = 1 };
typedef float lanes;
typedef int choice;
#endif

/* The channels of which n are left. A function that is called with n = LANES looks at n no more. */
DEVICE lanes get(GLOBAL const float *x, int n)
{
#ifdef LEAT_ON_CPU
    if (n >= LANES)
        return vload16(0, x);
    lanes v = 0;
    for (int i = 0; i < n; i++)
        ((float *)&v)[i] = x[i];
    return v;
#else
    return *x;
#endif
}

DEVICE void put(GLOBAL float *x, int n, lanes v)
{
#ifdef LEAT_ON_CPU
    if (n >= LANES) {
        vstore16(v, 0, x);
        return;
    }
    for (int i = 0; i < n; i++)
        x[i] = ((float *)&v)[i];
#else
    *x = v;
#endif
}

