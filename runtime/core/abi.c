// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The ABI as data: every number and name of <twin/abi.h> under the name that
 * crates/abi gives it, for the test that compares the two languages.
 */
#include <twin/abi.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]) - 1)

const struct twin_constant twin_abi_constants[] = {
	{ "ABI_VERSION", TWIN_ABI_VERSION },
	{ "PAGE_SHIFT", TWIN_PAGE_SHIFT },
	{ "PAGE_SIZE", TWIN_PAGE_SIZE },
	{ "STLB_ENTRIES", TWIN_STLB_ENTRIES },
	{ "ENTRY_SHIFT", TWIN_STLB_ENTRY_SHIFT },
	{ "TAG", TWIN_STLB_TAG },
	{ "XLATE", TWIN_STLB_XLATE },
	{ "INDEX_SHIFT", TWIN_STLB_INDEX_SHIFT },
	{ "INDEX_MASK", TWIN_STLB_INDEX_MASK },
	{ "WINDOW_PAGES", TWIN_WINDOW_PAGES },
	{ "COVERED", TWIN_COVERED },
	{ "BELOW", TWIN_BELOW },
	{ "SCHEME_PAPER", TWIN_SCHEME_PAPER },
	{ "SCHEME_STLB", TWIN_SCHEME_STLB },
	{ "TARGET_HYPERVISOR", TWIN_TARGET_HYPERVISOR },
	{ "TARGET_LINUX", TWIN_TARGET_LINUX },
	{ "TARGET_PROCESS", TWIN_TARGET_PROCESS },
	{ "BLOCK", TWIN_STACK_BLOCK },
	{ "LOW", TWIN_STACK_LOW },
	{ "HIGH", TWIN_STACK_HIGH },
	{ "CONTEXT", TWIN_STACK_CONTEXT },
	{ "SHADOW", TWIN_STACK_SHADOW },
	{ "FS_BASE_FROM_TOP", TWIN_FS_BASE_FROM_TOP },
	{ "GS_BASE_FROM_TOP", TWIN_GS_BASE_FROM_TOP },
	{ "MAX_FRAME", TWIN_MAX_FRAME },
	{ "BELOW_RSP", TWIN_BELOW_RSP },
	{ "INCOMING_ARGS", TWIN_INCOMING_ARGS },
	{ "NOTE_TYPE", TWIN_NOTE_TYPE },
	{ "MAP_ENTRY", TWIN_MAP_ENTRY },
	{ NULL, 0 },
};
const uint64_t twin_abi_constants_count = COUNT(twin_abi_constants);

const struct twin_name twin_abi_names[] = {
	{ "VM_PREFIX", TWIN_NAME_VM_PREFIX },
	{ "STLB", TWIN_NAME_STLB },
	{ "SLOW_PREFIX", TWIN_NAME_SLOW_PREFIX },
	{ "CALL", TWIN_NAME_CALL },
	{ "PORT_IN", TWIN_NAME_IN8 },
	{ "PORT_IN", TWIN_NAME_IN16 },
	{ "PORT_IN", TWIN_NAME_IN32 },
	{ "PORT_OUT", TWIN_NAME_OUT8 },
	{ "PORT_OUT", TWIN_NAME_OUT16 },
	{ "PORT_OUT", TWIN_NAME_OUT32 },
	{ "WARN", TWIN_NAME_WARN },
	{ "BUG", TWIN_NAME_BUG },
	{ "SMASHED", TWIN_NAME_SMASHED },
	{ "RUNTIME_PREFIX", TWIN_NAME_RUNTIME_PREFIX },
	{ "NOTE", TWIN_SECTION_NOTE },
	{ "NOTE_OWNER", TWIN_NOTE_OWNER },
	{ "CODEMAP", TWIN_SECTION_CODEMAP },
	{ "MAP", TWIN_SECTION_MAP },
	{ "LINUX_TEXT", TWIN_SECTION_LINUX_TEXT },
	{ "LINUX_RODATA", TWIN_SECTION_LINUX_RODATA },
	{ "LINUX_STLB", TWIN_SECTION_LINUX_STLB },
	{ NULL, NULL },
};
const uint64_t twin_abi_names_count = COUNT(twin_abi_names);
