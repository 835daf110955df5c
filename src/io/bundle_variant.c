/* bundle_variant.c -- variants in bundles, such as the positions of iterators: for each element the
 * length of a VariantTensorDataProto, its bytes, and the CRC of all that came before. */
#include <stdlib.h>
#include <string.h>

#include "core/element.h"
#include "core/variant.h"
#include "io/bundle_int.h"
#include "io/coding.h"
#include "io/crc32c.h"
#include "proto/tensor.pb-c.h"
#include "proto/wire.h"

static leat_status encode(const leat_variant *v, leat_strbuf *out)
{
    size_t n = 0;
    const void *bytes = v->type ? leat_variant_encode(v, &n) : NULL;
    LEAT_REQUIRE(!v->type || bytes, UNIMPLEMENTED, "A variant of type \"%s\" cannot be saved",
                 v->type->name);
    Leat__VariantTensorDataProto p = LEAT__VARIANT_TENSOR_DATA_PROTO__INIT;
    if (v->type) {
        p.type_name = (char *)v->type->name;
        p.metadata.data = (uint8_t *)bytes;
        p.metadata.len = n;
    }
    LEAT_TRY(leat_proto_pack(&p, out));
    return leat_strbuf_check(out);
}

leat_status leat_bundle_put_variants(const leat_variant *v, int64_t n, leat_strbuf *out,
                                     uint32_t *crc)
{
    leat_strbuf one = {.checked = true};
    leat_status s = NULL;
    for (int64_t i = 0; i < n && !s; i++) {
        leat_strbuf_clear(&one);
        s = encode(&v[i], &one);
        if (s)
            break;
        const uint64_t size = one.n;
        leat_put_varint(out, size);
        *crc = leat_crc32c_extend(*crc, &size, sizeof(size));
        leat_strbuf_add(out, leat_strbuf_text(&one), one.n);
        *crc = leat_crc32c_extend(*crc, leat_strbuf_text(&one), one.n);
        const uint32_t masked = leat_crc32c_mask(*crc);
        leat_put_fixed32(out, masked);
        *crc = leat_crc32c_extend(*crc, &masked, sizeof(masked));
    }
    leat_strbuf_release(&one);
    return s ? s : leat_strbuf_check(out);
}

static leat_status decode(const unsigned char *bytes, size_t n, leat_variant *out)
{
    Leat__VariantTensorDataProto *p;
    LEAT_TRY(LEAT_UNPACK(variant_tensor_data_proto, bytes, n, &p));
    bool empty = !*p->type_name && p->metadata.len == 0 && p->n_tensors == 0;
    leat_status s = NULL;
    if (!empty && (p->n_tensors > 0 ||
                   !leat_variant_decode(p->type_name, p->metadata.data, p->metadata.len, out)))
        s = leat_error(UNIMPLEMENTED,
                       "A variant of type \"%s\" that another program has saved cannot be restored",
                       p->type_name);
    leat_proto_free(p);
    return s;
}

leat_status leat_bundle_get_variants(const unsigned char *p, const unsigned char *end, int64_t n,
                                     leat_variant *v, uint32_t *crc)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t size;
        LEAT_REQUIRE(leat_get_varint(&p, end, &size) && (uint64_t)(end - p) >= sizeof(uint32_t) &&
                         size <= (uint64_t)(end - p) - sizeof(uint32_t),
                     DATA_LOSS, "Variant %lld is cut off", (long long)i);
        *crc = leat_crc32c_extend(*crc, &size, sizeof(size));
        *crc = leat_crc32c_extend(*crc, p, size);
        const uint32_t masked = leat_get_fixed32(p + size);
        LEAT_REQUIRE(leat_crc32c_unmask(masked) == *crc, DATA_LOSS,
                     "The checksum after Variant %lld does not match.", (long long)i);
        leat_variant_drop(v[i]); /* of a data file that did not fit its index */
        v[i] = (leat_variant){0};
        LEAT_TRY(decode(p, size, &v[i]));
        *crc = leat_crc32c_extend(*crc, &masked, sizeof(masked));
        p += size + sizeof(uint32_t);
    }
    return NULL;
}
