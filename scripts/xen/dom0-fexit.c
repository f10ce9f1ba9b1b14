// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A BPF program that the kernel calls with the result of a module's function (fexit), as tracers have them. It
 * does nothing.
 *
 *   fexit MODULE FUNCTION
 *
 * It is there until this is killed; "there" is printed then.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void die(const char *what)
{
	fprintf(stderr, "fexit: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* ---- The function's number (Documentation/bpf/btf.rst) ---- */

static const struct btf_header *read_types(const char *name)
{
	static const size_t most = 64 << 20;
	char path[256], *bytes = malloc(most);
	size_t length = 0;
	ssize_t more;
	int file;

	snprintf(path, sizeof(path), "/sys/kernel/btf/%s", name);
	file = open(path, O_RDONLY);
	if (file < 0 || !bytes)
		die(path);
	while ((more = read(file, bytes + length, most - length)) > 0)
		length += more;
	close(file);
	return (const struct btf_header *)bytes;
}

/* Bytes behind a type, by its kind. */
static size_t behind(const struct btf_type *type)
{
	const size_t count = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT: return sizeof(uint32_t);
	case BTF_KIND_ARRAY: return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION: return count * sizeof(struct btf_member);
	case BTF_KIND_ENUM: return count * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64: return count * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO: return count * sizeof(struct btf_param);
	case BTF_KIND_VAR: return sizeof(struct btf_var);
	case BTF_KIND_DATASEC: return count * sizeof(struct btf_var_secinfo);
	case BTF_KIND_DECL_TAG: return sizeof(struct btf_decl_tag);
	default: return 0;
	}
}

/* How many types there are; or, with a name, the place of the function of that name, whose names are numbered
 * from `first`. 0: there is none. */
static uint32_t walk(const struct btf_header *types, uint32_t first, const char *function)
{
	const char *at = (const char *)types + types->hdr_len + types->type_off;
	const char *end = at + types->type_len;
	const char *names = (const char *)types + types->hdr_len + types->str_off;
	uint32_t place = 0;

	while (at < end) {
		const struct btf_type *type = (const struct btf_type *)at;

		place++;
		if (function && BTF_INFO_KIND(type->info) == BTF_KIND_FUNC && type->name_off >= first &&
		    !strcmp(names + type->name_off - first, function))
			return place;
		at += sizeof(*type) + behind(type);
	}
	return function ? 0 : place;
}

static uint32_t number_of(const char *module, const char *function)
{
	const struct btf_header *kernel = read_types("vmlinux");
	const uint32_t place = walk(read_types(module), kernel->str_len, function);

	if (!place)
		die("the module has no such function");
	return walk(kernel, 0, NULL) + place;
}

/* The kernel's own handle of the module's types. */
static int handle_of(const char *module)
{
	union bpf_attr attr;
	struct bpf_btf_info info;
	char name[64];
	uint32_t id = 0;
	int handle;

	for (;;) {
		memset(&attr, 0, sizeof(attr));
		attr.start_id = id;
		if (bpf(BPF_BTF_GET_NEXT_ID, &attr))
			die(module);
		id = attr.next_id;
		memset(&attr, 0, sizeof(attr));
		attr.btf_id = id;
		handle = bpf(BPF_BTF_GET_FD_BY_ID, &attr);
		if (handle < 0)
			die(module);
		memset(&info, 0, sizeof(info));
		info.name = (uintptr_t)name;
		info.name_len = sizeof(name);
		memset(&attr, 0, sizeof(attr));
		attr.info.bpf_fd = handle;
		attr.info.info_len = sizeof(info);
		attr.info.info = (uintptr_t)&info;
		if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attr))
			die(module);
		if (!strcmp(name, module))
			return handle;
		close(handle);
	}
}

/* ---- The program ---- */

int main(int count, char **words)
{
	static const struct bpf_insn nothing[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr;
	int program;

	if (count != 3)
		return 2;
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_TRACING;
	attr.expected_attach_type = BPF_TRACE_FEXIT;
	attr.insns = (uintptr_t)nothing;
	attr.insn_cnt = sizeof(nothing) / sizeof(*nothing);
	attr.license = (uintptr_t)"GPL";
	attr.attach_btf_id = number_of(words[1], words[2]);
	attr.attach_btf_obj_fd = handle_of(words[1]);
	program = bpf(BPF_PROG_LOAD, &attr);
	if (program < 0)
		die("loading");
	memset(&attr, 0, sizeof(attr));
	attr.raw_tracepoint.prog_fd = program;
	if (bpf(BPF_RAW_TRACEPOINT_OPEN, &attr) < 0)
		die("attaching");
	puts("there");
	fflush(stdout);
	pause();
	return 0;
}
