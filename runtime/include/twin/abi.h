/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The binary interface of emitted code, the runtime and the verifier: numbers,
 * names and layouts, for C and for assembly. crates/abi states the same for Rust;
 * the table twin_abi_constants[] (core/abi.c) lets a test compare the two.
 *
 * Constants only: this header declares nothing that has state.
 */
#ifndef TWIN_ABI_H
#define TWIN_ABI_H

/* Version of everything here, carried by every rewritten object. */
#define TWIN_ABI_VERSION	6

/* Memory and the software translation table (paper, 4.1). */
#define TWIN_PAGE_SHIFT		12
#define TWIN_PAGE_SIZE		(1 << TWIN_PAGE_SHIFT)	/* bytes */
#define TWIN_STLB_ENTRIES	4096			/* a power of two */
#define TWIN_STLB_ENTRY_SHIFT	4			/* log2 of bytes an entry */
#define TWIN_STLB_TAG		0			/* byte offset in an entry */
#define TWIN_STLB_XLATE		8			/* byte offset in an entry */
/* Byte offset in the table of address va: (va >> SHIFT) & MASK. */
#define TWIN_STLB_INDEX_SHIFT	(TWIN_PAGE_SHIFT - TWIN_STLB_ENTRY_SHIFT)
#define TWIN_STLB_INDEX_MASK	((TWIN_STLB_ENTRIES - 1) << TWIN_STLB_ENTRY_SHIFT)
/* Consecutive pages that one valid entry maps from its own on (paper, footnote 2). */
#define TWIN_WINDOW_PAGES	2
/* Bytes before a translated address that its window shows, too: a page before. */
#define TWIN_BELOW		TWIN_PAGE_SIZE
/* Bytes certainly inside the window at and after a translated address. */
#define TWIN_COVERED		((TWIN_WINDOW_PAGES - 1) * TWIN_PAGE_SIZE + 1)

/* How a translation is written in the table and read by emitted code. */
#define TWIN_SCHEME_PAPER	0	/* tag = page, xlate = page ^ mapped */
#define TWIN_SCHEME_STLB	1	/* tag = page, xlate = mapped */
#define TWIN_SCHEME_WINDOW32	2	/* no table: see TWIN_WINDOW_SIZE */
#define TWIN_SCHEME_WINDOW	3	/* no table: see TWIN_WIDE_SIZE */

/* What a rewritten object runs on. */
#define TWIN_TARGET_HYPERVISOR	0	/* the testbed's, or Xen: code only */
#define TWIN_TARGET_LINUX	1	/* a stock kernel, in place of the original */
#define TWIN_TARGET_PROCESS	2	/* a program */

/* Which accesses are translated. */
#define TWIN_ACCESSES_ALL	0	/* loads and stores */
#define TWIN_ACCESSES_STORES	1	/* what may write; not for a hypervisor */

/* Which processors have the instructions that the rewriter adds. */
#define TWIN_PROCESSOR_ANY	0	/* every x86-64 processor */
#define TWIN_PROCESSOR_BMI2	1	/* pext; scheme `window` */

/*
 * The block of memory that one CPU runs a driver on, aligned to its size:
 *
 *   +0x0000  guard page, never mapped
 *   +0x1000  shadow of the driver stack, 4 pages: where the stack has a return
 *            address, the same address stands TWIN_STACK_SHADOW bytes below it
 *   +0x5000  guard pages, never mapped
 *   +0x9000  driver stack, 4 pages, grows down from +0xd000
 *   +0xd000  guard page, never mapped
 *   +0xe000  struct twin_cpu, at (rsp | 0xffff) - 0x1fff
 *   +0xf000  the host's: a page of its own, or never mapped. Xen finds its data of the CPU
 *            at the end of an aligned stack of 32 KiB, by rsp | 0x7fff
 *
 * Translations lead to pages of the stack and cover the page before and the
 * page after: guards. So no pointer of the driver reaches the shadow.
 */
#define TWIN_STACK_BLOCK	0x10000
#define TWIN_STACK_LOW		0x9000
#define TWIN_STACK_HIGH		0xd000
#define TWIN_STACK_CONTEXT	0xe000
#define TWIN_STACK_HOST		0xf000
#define TWIN_STACK_SHADOW	0x8000
/* The two words of the context that emitted code reads, from rsp | 0xffff. */
#define TWIN_FS_BASE_FROM_TOP	(TWIN_STACK_CONTEXT - (TWIN_STACK_BLOCK - 1))
#define TWIN_GS_BASE_FROM_TOP	(TWIN_FS_BASE_FROM_TOP + 8)
/* Most bytes a function has below its return address. */
#define TWIN_MAX_FRAME		3968
/* Bytes below rsp that an instruction may touch. */
#define TWIN_BELOW_RSP		128
/* Bytes above its return address that a function may read. */
#define TWIN_INCOMING_ARGS	64

/*
 * The window of the schemes without a table (docs/spec/window.md): dom0's page at
 * address A appears at the window's start plus the low 32 bits of A, its place. The
 * GS base is the window's start while driver code runs.
 */
#define TWIN_WINDOW_SIZE	0x100000000	/* bytes */
/* Bytes never mapped before the window's start and after its end. */
#define TWIN_WINDOW_GUARD	0x10000
/* Bytes from the window's start that are never mapped. */
#define TWIN_WINDOW_NULL_GUARD	0x10000

/*
 * The window of the scheme `window`: the place of an address is its low 42 bits. The
 * last TWIN_WIDE_MIRROR bytes of the window are mapped once more before its start:
 * displacements are extended by their sign, and dom0's kernel has its addresses there.
 */
#define TWIN_WIDE_BITS		42
#define TWIN_WIDE_SIZE		0x40000000000	/* bytes */
#define TWIN_WIDE_MIRROR	0x80000000
/* Bytes never mapped before the mirror and after the window's end. */
#define TWIN_WIDE_GUARD		0x100000000
/* What an address is cut with: twin_window_mask has these eight bytes. */
#define TWIN_WIDE_MASK		(TWIN_WIDE_SIZE - 1)

/* Names in the symbol table of a rewritten object. */
#define TWIN_NAME_VM_PREFIX	"twin_vm:"
#define TWIN_NAME_STLB		"twin_stlb"
#define TWIN_NAME_SLOW_PREFIX	"twin_slow_"
#define TWIN_NAME_CALL		"twin_stlb_call"
#define TWIN_NAME_IN8		"twin_in8"
#define TWIN_NAME_IN16		"twin_in16"
#define TWIN_NAME_IN32		"twin_in32"
#define TWIN_NAME_OUT8		"twin_out8"
#define TWIN_NAME_OUT16		"twin_out16"
#define TWIN_NAME_OUT32		"twin_out32"
#define TWIN_NAME_WARN		"twin_warn"
#define TWIN_NAME_BUG		"twin_bug"
#define TWIN_NAME_SMASHED	"twin_smashed"
#define TWIN_NAME_WINDOW	"twin_window"
#define TWIN_NAME_WINDOW_MASK	"twin_window_mask"
#define TWIN_NAME_STACK_VIEW	"twin_stack_view"
#define TWIN_NAME_WILD		"twin_wild"
#define TWIN_NAME_LOWEST	"twin_lowest"
#define TWIN_NAME_HIGHEST	"twin_highest"
#define TWIN_NAME_RUNTIME_PREFIX "twin_"

/* Sections that the rewriter adds. */
#define TWIN_SECTION_NOTE	".note.twin"
#define TWIN_SECTION_CODEMAP	".twin.codemap"
#define TWIN_SECTION_MAP	".twin.map"
#define TWIN_SECTION_LINUX_TEXT	".twin.text"
#define TWIN_SECTION_LINUX_RODATA ".twin.rodata"
#define TWIN_SECTION_LINUX_STLB	".twin.stlb"
#define TWIN_NOTE_OWNER		"twin"
#define TWIN_NOTE_TYPE		1
#define TWIN_MAP_ENTRY		12	/* bytes of one entry of .twin.map */

#ifndef __ASSEMBLER__

#include <stddef.h>
#include <stdint.h>

/* One entry of the translation table, as emitted code reads it. */
struct twin_stlb_entry {
	uint64_t tag;		/* a dom0 page address */
	uint64_t xlate;		/* see TWIN_SCHEME_* */
};

/* One entry of .twin.codemap, both words filled by relocations. */
struct twin_codemap_entry {
	uint64_t vm;		/* code address in dom0's instance */
	uint64_t hyp;		/* its counterpart in this instance */
};

/* Descriptor of the note in .note.twin, little-endian. */
struct twin_note {
	uint32_t abi_version;
	uint32_t scheme;
	uint32_t word_bits;
	uint32_t target;	/* TWIN_TARGET_* */
	uint32_t accesses;	/* TWIN_ACCESSES_* */
	uint32_t processor;	/* TWIN_PROCESSOR_* */
};

/* One entry of .twin.map; holds until the next. */
struct twin_map_entry {
	uint32_t section;	/* index in the rewritten object */
	uint32_t offset;	/* in that section */
	uint32_t original;	/* offset in the original's section of that name */
};

_Static_assert(sizeof(struct twin_stlb_entry) == 1 << TWIN_STLB_ENTRY_SHIFT, "entry size");
_Static_assert(offsetof(struct twin_stlb_entry, tag) == TWIN_STLB_TAG, "tag");
_Static_assert(offsetof(struct twin_stlb_entry, xlate) == TWIN_STLB_XLATE, "xlate");
_Static_assert((TWIN_STLB_ENTRIES & (TWIN_STLB_ENTRIES - 1)) == 0, "power of two");
_Static_assert(TWIN_STLB_INDEX_MASK == 0xfff0 && TWIN_STLB_INDEX_SHIFT == 8, "emitted immediates");
_Static_assert(TWIN_COVERED == 4097, "emitted displacements rely on it");
_Static_assert(TWIN_STACK_LOW - TWIN_STACK_SHADOW == TWIN_PAGE_SIZE,
	       "the shadow is mapped where the stack is, above a guard page");
_Static_assert(TWIN_STACK_HIGH - TWIN_STACK_SHADOW + TWIN_BELOW + TWIN_PAGE_SIZE <= TWIN_STACK_LOW,
	       "what a translation of the stack covers ends a guard page above the shadow");
_Static_assert(TWIN_MAX_FRAME + TWIN_BELOW_RSP <= TWIN_PAGE_SIZE,
	       "a frame cannot step over a guard page");
_Static_assert((TWIN_STACK_BLOCK & (TWIN_STACK_BLOCK - 1)) == 0, "found by masking rsp");
_Static_assert(TWIN_STACK_CONTEXT + TWIN_PAGE_SIZE == TWIN_STACK_HOST, "the host's page follows");
_Static_assert(TWIN_STACK_HOST + TWIN_PAGE_SIZE == TWIN_STACK_BLOCK, "the host's page is the last");
_Static_assert(TWIN_STACK_HIGH + TWIN_PAGE_SIZE == TWIN_STACK_CONTEXT, "guard above the stack");
_Static_assert(TWIN_WINDOW_GUARD % TWIN_PAGE_SIZE == 0 && TWIN_WINDOW_NULL_GUARD % TWIN_PAGE_SIZE == 0,
	       "guards are pages");
_Static_assert(sizeof(struct twin_codemap_entry) == 16, "two words");
_Static_assert(sizeof(struct twin_note) == 24, "six u32");
_Static_assert(sizeof(struct twin_map_entry) == TWIN_MAP_ENTRY, "three u32");

/* The constants above by the names crates/abi has for them. */
struct twin_constant {
	const char *name;
	int64_t value;
};

/* The strings above by the names crates/abi has for them. */
struct twin_name {
	const char *name;
	const char *text;
};

/* Both end with an entry whose name is NULL, which the counts leave out. */
extern const struct twin_constant twin_abi_constants[];
extern const uint64_t twin_abi_constants_count;
extern const struct twin_name twin_abi_names[];
extern const uint64_t twin_abi_names_count;

#endif /* __ASSEMBLER__ */
#endif /* TWIN_ABI_H */
