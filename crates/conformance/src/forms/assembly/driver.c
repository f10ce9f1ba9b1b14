/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Calls each of `functions` with random registers and memory, and prints what it left: a digest of
 * memory, and registers by number. Assembled natively and rewritten, the output is the same.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { DATA_BYTES = 8 * 4096, FAR_BYTES = 4 * 4096, RUNS = 6 };

/* Loaded and stored by `enter`: all but `rsp`, then what fxrstor and fxsave know. */
struct state {
	uint64_t registers[16];
	_Alignas(16) unsigned char vectors[512];
};

typedef void function(void);

extern function *const functions[];
void enter(function *called, const struct state *in, struct state *out);

/* At addresses that the linker and the compiler are told of, the same in both programs. */
extern unsigned char dom0_data[DATA_BYTES];
static unsigned char *const far_data = (unsigned char *)FAR;
static uint64_t word;

/* clang-format off */
__asm__(
	".text\n"
	"enter:\n"
	"push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"push %rdx; push %rdi\n"
	"fxrstor64 128(%rsi)\n"
	"mov %rsi,%rax\n"
	"mov 8(%rax),%rcx; mov 16(%rax),%rdx; mov 24(%rax),%rbx; mov 40(%rax),%rbp\n"
	"mov 48(%rax),%rsi; mov 56(%rax),%rdi; mov 64(%rax),%r8; mov 72(%rax),%r9\n"
	"mov 80(%rax),%r10; mov 88(%rax),%r11; mov 96(%rax),%r12; mov 104(%rax),%r13\n"
	"mov 112(%rax),%r14; mov 120(%rax),%r15; mov (%rax),%rax\n"
	"call *(%rsp)\n"
	"push %rax\n"
	"mov 16(%rsp),%rax\n"
	"pop (%rax)\n"
	"mov %rcx,8(%rax); mov %rdx,16(%rax); mov %rbx,24(%rax); mov %rbp,40(%rax)\n"
	"mov %rsi,48(%rax); mov %rdi,56(%rax); mov %r8,64(%rax); mov %r9,72(%rax)\n"
	"mov %r10,80(%rax); mov %r11,88(%rax); mov %r12,96(%rax); mov %r13,104(%rax)\n"
	"mov %r14,112(%rax); mov %r15,120(%rax)\n"
	"fxsave64 128(%rax)\n"
	"cld; fninit\n"
	"add $16,%rsp\n"
	"pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"ret\n");
/* clang-format on */

/* xorshift64, with many small numbers, and words that differ in little. */
static uint64_t next(void)
{
	word ^= word << 13;
	word ^= word >> 7;
	word ^= word << 17;
	switch (word & 7) {
	case 0:
		return 0;
	case 1:
		return word >> 60;
	case 2:
		return -(word >> 60);
	default:
		return word;
	}
}

static void fill(void *to, size_t bytes)
{
	for (size_t n = 0; n < bytes; n += 8) {
		uint64_t value = next();

		memcpy((unsigned char *)to + n, &value, 8);
	}
}

/* FNV-1a */
static uint64_t digest(uint64_t hash, const void *from, size_t bytes)
{
	for (size_t n = 0; n < bytes; n++)
		hash = (hash ^ ((const unsigned char *)from)[n]) * 0x100000001b3;
	return hash;
}

static void run(unsigned int number, unsigned int seed)
{
	static const uint32_t mxcsr = 0x1f80;
	static const uint16_t control = 0x37f;
	struct state in = { 0 }, out = { 0 };
	uint64_t hash = 0xcbf29ce484222325;

	word = (number * 64 + seed + 1) * 0x9e3779b97f4a7c15;
	fill(dom0_data, DATA_BYTES);
	fill(far_data, FAR_BYTES);
	fill(in.registers, sizeof(in.registers));
	fill(in.vectors + 160, 256);
	memcpy(in.vectors, &control, sizeof(control));
	memcpy(in.vectors + 24, &mxcsr, sizeof(mxcsr));
	enter(functions[number], &in, &out);

	/* Where the last x87 instruction and its operand are: not the same when rewritten. */
	memset(out.vectors + 6, 0, 18);
	hash = digest(hash, dom0_data, DATA_BYTES);
	hash = digest(hash, far_data, FAR_BYTES);
	hash = digest(hash, out.vectors, 416);
	printf("f%u, run %u: memory and vectors %016lx", number, seed, hash);
	for (unsigned int n = 0; n < 16; n++)
		printf(" %lx", out.registers[n]);
	printf("\n");
}

static int map(unsigned char *at, size_t bytes)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;

	return mmap(at, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == at;
}

int main(void)
{
	if (!map(dom0_data, DATA_BYTES) || !map(far_data, FAR_BYTES))
		return 2;
	for (unsigned int number = 0; functions[number]; number++)
		for (unsigned int seed = 0; seed < RUNS; seed++)
			run(number, seed);
	return 0;
}
