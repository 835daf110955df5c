/* certificates.h -- TLS certificates for tests, made on the spot by the openssl command. */
#ifndef LEAT_TEST_CERTIFICATES_H
#define LEAT_TEST_CERTIFICATES_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static char certificates[64] = "/tmp/leat-certificates-XXXXXX"; /* the directory */

/* The path of a file of them. */
static inline const char *file(const char *name)
{
    static char paths[64][100];
    static int next;
    char *p = paths[next++ % 64];
    snprintf(p, sizeof paths[0], "%s/%s", certificates, name);
    return p;
}

/* Two authorities, "ca" and "ca2"; NAME.pem and NAME.key:
 *
 *     task     by ca for localhost, 127.0.0.1, 10.77.0.1 and 10.77.0.2
 *     named    by ca for elsewhere
 *     expired  by ca for localhost and 127.0.0.1, until yesterday
 *     future   by ca, from the year 2099 on
 *     other    by ca2 for elsewhere
 *
 * False: there is no openssl command. */
static inline bool certificates_make(void)
{
    if (!mkdtemp(certificates) || system("openssl version >/dev/null 2>&1"))
        return false;
    char script[3000];
    snprintf(
        script, sizeof script,
        "cd %s && exec >/dev/null 2>&1 && key='ec -pkeyopt ec_paramgen_curve:P-256'\n"
        "for a in ca ca2; do openssl req -x509 -newkey $key -nodes -days 2 -subj /CN=$a "
        "-keyout $a.key -out $a.pem || exit 1; done\n"
        "sign() { openssl req -newkey $key -nodes -subj /CN=$1 -keyout $1.key -out $1.csr "
        "&& printf \"subjectAltName=$3\" >$1.ext && openssl x509 -req -in $1.csr -CA $2.pem "
        "-CAkey $2.key -CAcreateserial -days $4 -extfile $1.ext -out $1.pem; }\n"
        "sign task ca DNS:localhost,IP:127.0.0.1,IP:10.77.0.1,IP:10.77.0.2 2 && "
        "sign other ca2 DNS:elsewhere 2 && sign named ca DNS:elsewhere 2 && "
        "sign expired ca DNS:localhost,IP:127.0.0.1 -1 && : >index && echo 77 >serial && "
        "printf '[ca]\\ndefault_ca=d\\n[d]\\ndatabase=index\\nserial=serial\\nnew_certs_dir=.\\n"
        "default_md=sha256\\npolicy=p\\n[p]\\ncommonName=supplied\\n' >ca.conf && "
        "openssl req -newkey $key -nodes -subj /CN=future -keyout future.key -out future.csr "
        "&& openssl ca -batch -config ca.conf -cert ca.pem -keyfile ca.key -in future.csr "
        "-out future.pem -notext -startdate 20990101000000Z -enddate 20991231000000Z\n",
        certificates);
    return system(script) == 0;
}

static inline void certificates_remove(void)
{
    char script[100];
    snprintf(script, sizeof script, "rm -rf %s", certificates);
    if (system(script))
        printf("%s is left\n", certificates);
}

#endif
