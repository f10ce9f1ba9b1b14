/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Calls functions of openssl's assembly files with keys, lengths and data by chance, with six
 * sets of processor features, and prints a hash of what each leaves. Linked once with the files
 * as they are, once with the rewritten ones, by scripts/tables.sh, it prints the same.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Without prototypes: they have as many forms as functions. */
long sha256_block_data_order(); long sha1_block_data_order(); long sha512_block_data_order();
long whirlpool_block(); long ossl_md5_block_asm_data_order(); long AES_set_encrypt_key();
long AES_set_decrypt_key(); long AES_encrypt(); long AES_decrypt(); long AES_cbc_encrypt();
long aesni_set_encrypt_key(); long aesni_set_decrypt_key(); long aesni_cbc_encrypt();
long aesni_ctr32_encrypt_blocks(); long aesni_xts_encrypt(); long aesni_xts_decrypt();
long aesni_ecb_encrypt(); long aesni_ccm64_encrypt_blocks(); long aesni_ocb_encrypt();
long ChaCha20_ctr32(); long Camellia_Ekeygen(); long Camellia_EncryptBlock_Rounds();
long Camellia_DecryptBlock_Rounds(); long Camellia_cbc_encrypt(); long RC4(); long RC4_set_key();
long gcm_gmult_4bit(); long gcm_ghash_4bit(); long gcm_init_clmul(); long gcm_ghash_clmul();
long gcm_gmult_clmul(); long gcm_init_avx(); long gcm_ghash_avx(); long SHA3_absorb();
long SHA3_squeeze(); long bn_mul_mont(); long bn_GF2m_mul_2x2(); long x25519_fe51_mul();
long x25519_fe51_sqr(); long ecp_nistz256_mul_mont(); long ecp_nistz256_point_double();
long ecp_nistz256_point_add(); long ecp_nistz256_ord_mul_mont(); long ecp_nistz256_gather_w7();
long ecp_nistz256_scatter_w5(); long ecp_nistz256_gather_w5(); long aesni_cbc_sha1_enc();
long aesni_cbc_sha256_enc(); long bn_mul_mont_gather5(); long bn_power5(); long bn_scatter5();
long bn_gather5(); long sha1_multi_block(); long sha256_multi_block(); long OPENSSL_ia32_cpuid();
long rsaz_512_mul(); long rsaz_512_sqr(); long vpaes_set_encrypt_key(); long vpaes_encrypt();
long vpaes_set_decrypt_key(); long vpaes_decrypt(); long vpaes_cbc_encrypt();
long ossl_bsaes_ctr32_encrypt_blocks(); long ossl_bsaes_cbc_encrypt(); long OPENSSL_cleanse();
long CRYPTO_memcmp();
char *RC4_options(void);
extern const char ecp_nistz256_precomputed[];
unsigned int OPENSSL_ia32cap_P[4];

/* Called by what is put into .init of x86_64cpuid.s. */
void OPENSSL_cpuid_setup(void) {}

#define AT_64 __attribute__((aligned(64)))
static unsigned char in[8192] AT_64, out[8192] AT_64, ctx[8192] AT_64, key[4096] AT_64;
static unsigned char iv[64] AT_64, t[65536] AT_64, uk[32];
static int blocks;

static uint64_t rnd(void)
{
    static uint64_t seed = 88172645463325252ull;
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static void fill(void *to, size_t n)
{
    unsigned char *c = to;
    while (n--)
        *c++ = rnd();
}

/* FNV-1a of what is at `p`. */
static void show(const char *name, const void *p, size_t n)
{
    uint64_t hash = 1469598103934665603ull;
    const unsigned char *c = p;
    while (n--) {
        hash ^= *c++;
        hash *= 1099511628211ull;
    }
    printf("%s %016lx\n", name, hash);
}

/* The features of this processor, of which each set has more. */
static void features(int k)
{
    const unsigned ssse3 = 1u << 9 | 1 | 1 << 1 | 1 << 25 | 1 << 22 | 1 << 19 | 1 << 20 | 1 << 23;
    const unsigned avx512 = 1u << 16 | 1 << 30 | 1u << 31 | 1 << 17 | 1 << 28 | 1 << 21;
    unsigned all[4] = {0};
    uint64_t first = OPENSSL_ia32_cpuid(all);

    memset(OPENSSL_ia32cap_P, 0, sizeof OPENSSL_ia32cap_P);
    OPENSSL_ia32cap_P[0] = (unsigned)first & ~(1u << 20);
    if (k >= 1)
        OPENSSL_ia32cap_P[1] = (unsigned)(first >> 32) & ssse3;
    if (k >= 2)
        OPENSSL_ia32cap_P[1] = first >> 32;
    if (k >= 3)
        OPENSSL_ia32cap_P[2] = all[2] & ~(avx512 | (k == 3 ? 1u << 29 : 0));
    if (k >= 5) {
        OPENSSL_ia32cap_P[2] = all[2];
        OPENSSL_ia32cap_P[3] = all[3];
    }
}

/* Whether it has what is called with that set and does not ask: SSSE3, AES and carry-less multiplication, then AVX
 * (CPUID.1:ECX). */
static int has(int k)
{
    const uint64_t ssse3 = 1u << 9 | 1 << 25 | 1 << 1, avx = 1u << 28;
    const uint64_t needed = k >= 2 ? ssse3 | avx : k >= 1 ? ssse3 : 0;
    unsigned all[4] = {0};

    return (OPENSSL_ia32_cpuid(all) >> 32 & needed) == needed;
}

static void sums(void)
{
    sha256_block_data_order(ctx, in, (size_t)blocks);
    show("sha256", ctx, 32);
    sha1_block_data_order(ctx, in, (size_t)blocks);
    show("sha1", ctx, 20);
    sha512_block_data_order(ctx, in, (size_t)blocks);
    show("sha512", ctx, 64);
    whirlpool_block(ctx, in, (size_t)blocks);
    show("whirlpool", ctx, 64);
    ossl_md5_block_asm_data_order(ctx, in, (size_t)blocks);
    show("md5", ctx, 16);
}

static void aes(void)
{
    AES_set_encrypt_key(uk, 256, key);
    show("aes key", key, 244);
    AES_encrypt(in, out, key);
    show("aes", out, 16);
    AES_cbc_encrypt(in, out, (size_t)16 * blocks, key, iv, 1);
    show("aes cbc", out, 16 * blocks);
    AES_set_decrypt_key(uk, 192, key);
    AES_decrypt(in, out, key);
    show("aes d", out, 16);
    AES_cbc_encrypt(in, out, (size_t)16 * blocks, key, iv, 0);
    show("aes cbc d", out, 16 * blocks);
}

/* What needs SSSE3, and AES and carry - less multiplication; later sets have AVX and SHA. */
static void vectors(int k)
{
    vpaes_set_encrypt_key(uk, 128, key);
    vpaes_encrypt(in, out, key);
    show("vpaes", out, 16);
    vpaes_cbc_encrypt(in, out, (size_t)16 * blocks, key, iv, 1);
    show("vpaes cbc", out, 16 * blocks);
    vpaes_set_decrypt_key(uk, 256, key);
    vpaes_decrypt(in, out, key);
    show("vpaes d", out, 16);
    AES_set_encrypt_key(uk, 128, key);
    ossl_bsaes_ctr32_encrypt_blocks(in, out, (size_t)blocks + 8, key, iv);
    show("bsaes", out, 16 * blocks + 128);
    AES_set_decrypt_key(uk, 128, key);
    ossl_bsaes_cbc_encrypt(in, out, (size_t)16 * (blocks + 8), key, iv, 0);
    show("bsaes d", out, 16 * blocks + 128);
    aesni_set_encrypt_key(uk, 256, key);
    show("aesni key", key, 244);
    aesni_cbc_encrypt(in, out, (size_t)16 * blocks, key, iv, 1);
    show("aesni cbc", out, 16 * blocks);
    aesni_ctr32_encrypt_blocks(in, out, (size_t)blocks, key, iv);
    show("aesni ctr", out, 16 * blocks);
    aesni_ecb_encrypt(in, out, (size_t)16 * blocks, key, 1);
    show("aesni ecb", out, 16 * blocks);
    aesni_xts_encrypt(in, out, (size_t)16 * blocks + rnd() % 16, key, key, iv);
    show("aesni xts", out, 16 * blocks + 16);
    aesni_set_decrypt_key(uk, 256, key);
    aesni_cbc_encrypt(in, out, (size_t)16 * blocks + rnd() % 16, key, iv, 0);
    show("aesni cbc d", out, 16 * blocks);
    gcm_init_clmul(t, iv);
    gcm_ghash_clmul(iv, t, in, (size_t)16 * blocks);
    show("ghash clmul", iv, 16);
    gcm_gmult_clmul(iv, t);
    show("gmult", iv, 16);
    if (k >= 2) {
        aesni_set_encrypt_key(uk, 128, key);
        aesni_cbc_sha1_enc(in, out, (size_t)blocks, key, iv, ctx, in + 4096);
        show("cbc sha1", out, 64 * blocks);
        show("st", ctx, 20);
    }
    if (k >= 3) {
        aesni_cbc_sha256_enc(in, out, (size_t)blocks, key, iv, ctx, in + 4096);
        show("cbc sha256", out, 64 * blocks);
        show("st", ctx, 32);
    }
    if (k >= 2) {
        gcm_init_avx(t, iv);
        gcm_ghash_avx(iv, t, in, (size_t)16 * blocks);
        show("ghash avx", iv, 16);
    }
}

static void streams(void)
{
    ChaCha20_ctr32(out, in, (size_t)blocks * 97, key, iv);
    show("chacha", out, blocks * 97);
    memset(key, 0, 512);
    Camellia_Ekeygen(256, uk, key);
    show("camellia key", key, 272);
    Camellia_EncryptBlock_Rounds(4, in, key, out);
    show("camellia", out, 16);
    Camellia_DecryptBlock_Rounds(4, in, key, out);
    show("camellia d", out, 16);
    RC4_set_key(t, 16, uk);
    RC4(t, (size_t)blocks * 33, in, out);
    show("rc4", out, blocks * 33);
    fill(t, 256);
    gcm_gmult_4bit(iv, t);
    show("gmult4", iv, 16);
    gcm_ghash_4bit(iv, t, in, (size_t)16 * blocks);
    show("ghash4", iv, 16);
    memset(t, 0, 200);
    SHA3_absorb(t, in, (size_t)136 * blocks, (size_t)136);
    show("sha3", t, 200);
    SHA3_squeeze(t, out, (size_t)500, (size_t)136);
    show("sha3s", out, 500);
}

/* Of an odd number modulo 2^64. */
static uint64_t inverse(uint64_t n)
{
    uint64_t x = 1;
    for (int i = 0; i < 6; i++)
        x *= 2 - n * x;
    return x;
}

static void numbers(void)
{
    uint64_t n[32], a[32], b[32], rr[32], n0[2];
    for (int w = 8; w <= 32; w += 8) {
        fill(n, 256);
        fill(a, 256);
        fill(b, 256);
        n[0] |= 1;
        n[w - 1] |= 1ull << 63;
        a[w - 1] >>= 1;
        b[w - 1] >>= 1;
        uint64_t x = inverse(n[0]);
        n0[0] = -x;
        n0[1] = 0;
        bn_mul_mont(rr, a, b, n, n0, w);
        show("mont", rr, 8 * w);
        for (int i = 0; i < 32; i++) {
            fill(a, 256);
            a[w - 1] >>= 1;
            bn_scatter5(a, (long)w, t, (long)i);
        }
        bn_gather5(rr, (long)w, t, (long)(rnd() % 32));
        show("gather5", rr, 8 * w);
        bn_mul_mont_gather5(rr, b, t, n, n0, w, (int)(rnd() % 32));
        show("mont gather", rr, 8 * w);
        bn_power5(rr, b, t, n, n0, w, (int)(rnd() % 32));
        show("power5", rr, 8 * w);
    }
    n[7] |= 1ull << 63;
    fill(n, 64);
    n[0] |= 1;
    fill(a, 64);
    fill(b, 64);
    uint64_t x = inverse(n[0]);
    rsaz_512_mul(rr, a, b, n, -x);
    show("rsaz", rr, 64);
    rsaz_512_sqr(rr, a, n, -x, 3);
    show("rsaz sqr", rr, 64);
    fill(a, 40);
    fill(b, 40);
    x25519_fe51_mul(rr, a, b);
    show("fe51", rr, 40);
    fill(a, 96);
    fill(b, 96);
    a[3] >>= 1;
    b[3] >>= 1;
    ecp_nistz256_mul_mont(rr, a, b);
    show("p256", rr, 32);
    ecp_nistz256_point_double(rr, a);
    show("dbl", rr, 96);
    ecp_nistz256_point_add(rr, a, b);
    show("add", rr, 96);
    ecp_nistz256_ord_mul_mont(rr, a, b);
    show("ord", rr, 32);
    ecp_nistz256_gather_w7(rr, ecp_nistz256_precomputed + 4096 * (rnd() % 37), (int)(rnd() % 64));
    show("w7", rr, 64);
    bn_GF2m_mul_2x2(rr, a[0], a[1], b[0], b[1]);
    show("gf2m", rr, 32);
}

/* Several messages at once. */
static void many(int k)
{
    struct {
        void *data;
        int blocks;
        int pad;
    } d[8];
    unsigned state[8][8];

    fill(state, sizeof state);
    for (int i = 0; i < 8; i++) {
        d[i].data = in + 512 * i;
        d[i].blocks = 1 + rnd() % 8;
    }
    sha256_multi_block(state, d, k >= 3 ? 2 : 1);
    show("sha256 mb", state, sizeof state);
    sha1_multi_block(state, d, k >= 3 ? 2 : 1);
    show("sha1 mb", state, sizeof state);
}

int main(void)
{
    for (int k = 0; k < 6 && has(k); k++) {
        features(k);
        printf("rc4: %s\n", RC4_options());
        for (int round = 0; round < 6; round++) {
            fill(in, sizeof in);
            fill(key, sizeof key);
            fill(iv, sizeof iv);
            fill(ctx, sizeof ctx);
            fill(uk, sizeof uk);
            memset(out, 0, sizeof out);
            blocks = 1 + rnd() % 20;
            sums();
            memset(key, 0, 512);
            aes();
            if (k >= 1)
                vectors(k);
            streams();
            numbers();
            if (k >= 1)
                many(k);
            OPENSSL_cleanse(in, (size_t)100);
            printf("memcmp %ld\n", CRYPTO_memcmp(in, out, 100l) & 1);
        }
    }
    return 0;
}
