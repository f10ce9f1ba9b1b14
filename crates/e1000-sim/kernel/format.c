// SPDX-License-Identifier: GPL-2.0-only
/*
 * format.c: vsnprintf with the kernel's conversions that a network driver uses:
 * flags, width, precision, hh h l ll z t, d i u x X o c s p %, and of the
 * pointers pM pm pI4 pV pS ps pe pa pK px pNF and *ph. An unknown one is printed
 * unchanged, between angle brackets, so that it is noticed.
 *
 * Contexts: any. No memory but the caller's.
 */
#include <linux/kernel.h>
#include <linux/netdev_features.h>
#include <linux/printk.h>
#include <linux/string.h>

#include "shim.h"

struct output {
	char *at, *end;         /* writes below end only */
	size_t length;          /* what would have been written */
};

struct spec {
	bool left, plus, space, alternate, zero;
	int width;
	int precision;          /* -1: none */
	int size;               /* bytes of an integer argument */
};

static void put(struct output *out, char c)
{
	if (out->at < out->end)
		*out->at++ = c;
	out->length++;
}

static void put_pad(struct output *out, char c, int count)
{
	while (count-- > 0)
		put(out, c);
}

static void put_text(struct output *out, const struct spec *spec, const char *text, size_t length)
{
	int pad = spec->width - (int)length;

	if (!spec->left)
		put_pad(out, ' ', pad);
	while (length--)
		put(out, *text++);
	if (spec->left)
		put_pad(out, ' ', pad);
}

static void put_string(struct output *out, const struct spec *spec, const char *text)
{
	size_t limit = spec->precision < 0 ? SIZE_MAX : spec->precision;

	if ((unsigned long)text < PAGE_SIZE)
		text = text ? "(efault)" : "(null)";
	put_text(out, spec, text, strnlen(text, limit));
}

static void put_number(struct output *out, struct spec spec, u64 value, unsigned int base,
		       bool is_signed, bool upper)
{
	const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
	char reversed[24], sign = 0;
	int count = 0, zeros, length;
	bool prefix = spec.alternate && base == 16;

	if (is_signed && (s64)value < 0) {
		sign = '-';
		value = -value;
	} else if (is_signed && (spec.plus || spec.space)) {
		sign = spec.plus ? '+' : ' ';
	}
	do {
		reversed[count++] = digits[value % base];
		value /= base;
	} while (value);
	length = count + !!sign + 2 * prefix;
	zeros = spec.precision - count;
	if (spec.precision < 0)
		zeros = spec.zero && !spec.left ? spec.width - length : 0;
	zeros = max(zeros, 0);
	if (!spec.left)
		put_pad(out, ' ', spec.width - length - zeros);
	if (sign)
		put(out, sign);
	if (prefix) {
		put(out, '0');
		put(out, upper ? 'X' : 'x');
	}
	put_pad(out, '0', zeros);
	while (count)
		put(out, reversed[--count]);
	if (spec.left)
		put_pad(out, ' ', spec.width - length - zeros);
}

static void put_hex(struct output *out, u64 value, int digits)
{
	put_number(out, (struct spec){ .precision = digits }, value, 16, false, false);
}

/* Bytes in hexadecimal, `separator` between them unless 0. */
static void put_bytes(struct output *out, const u8 *bytes, int count, char separator)
{
	int i;

	for (i = 0; i < count; i++) {
		if (i && separator)
			put(out, separator);
		put_hex(out, bytes[i], 2);
	}
}

static void put_ipv4(struct output *out, const u8 *bytes)
{
	int i;

	for (i = 0; i < 4; i++) {
		if (i)
			put(out, '.');
		put_number(out, (struct spec){ .precision = -1 }, bytes[i], 10, false, false);
	}
}

static void put_format(struct output *out, const char *format, va_list args);

static void put_va_format(struct output *out, const struct va_format *vaf)
{
	va_list copy;

	va_copy(copy, *vaf->va);
	put_format(out, vaf->fmt, copy);
	va_end(copy);
}

/* `kind` points after the p; returns how many letters of it belong to it. */
static int put_pointer(struct output *out, const struct spec *spec, const char *kind, void *pointer)
{
	switch (*kind) {
	case 'M':
		put_bytes(out, pointer, 6, ':');
		return 1;
	case 'm':
		put_bytes(out, pointer, 6, 0);
		return 1;
	case 'I':
		if (kind[1] != '4')
			break;
		put_ipv4(out, pointer);
		return 2;
	case 'V':
		put_va_format(out, pointer);
		return 1;
	case 'h':
		put_bytes(out, pointer, clamp(spec->width, 0, 64),
			  kind[1] == 'C' ? ':' : kind[1] == 'D' ? '-' : kind[1] == 'N' ? 0 : ' ');
		return 1 + (kind[1] == 'C' || kind[1] == 'D' || kind[1] == 'N');
	case 'a':
		put(out, '0');
		put(out, 'x');
		put_hex(out, *(u64 *)pointer, 16);
		return 1;
	case 'N':
		if (kind[1] != 'F')
			break;
		put(out, '0');
		put(out, 'x');
		put_hex(out, *(netdev_features_t *)pointer, 16);
		return 2;
	case 'e':
		put_number(out, (struct spec){ .precision = -1 }, (u64)(long)pointer, 10, true, false);
		return 1;
	case 'S': case 's': case 'B': case 'K': case 'x':
		put_hex(out, (u64)pointer, 1);
		return 1;
	}
	/* Not hashed: nothing is secret here, and addresses must be comparable. */
	put_number(out, (struct spec){ .precision = 16, .width = spec->width, .left = spec->left },
		   (u64)pointer, 16, false, false);
	return 0;
}

static const char *parse_flags(struct spec *spec, const char *at)
{
	for (;; at++) {
		switch (*at) {
		case '-': spec->left = true; break;
		case '+': spec->plus = true; break;
		case ' ': spec->space = true; break;
		case '#': spec->alternate = true; break;
		case '0': spec->zero = true; break;
		default: return at;
		}
	}
}

static const char *parse_digits(int *value, const char *at)
{
	for (*value = 0; *at >= '0' && *at <= '9'; at++)
		*value = *value * 10 + *at - '0';
	return at;
}

static const char *parse_size(struct spec *spec, const char *at)
{
	spec->size = 4;
	if (at[0] == 'h') {
		spec->size = at[1] == 'h' ? 1 : 2;
		return at + 1 + (at[1] == 'h');
	}
	if (at[0] == 'l' || at[0] == 'z' || at[0] == 't' || at[0] == 'L' || at[0] == 'q') {
		spec->size = 8;
		return at + 1 + (at[0] == 'l' && at[1] == 'l');
	}
	return at;
}

static u64 narrow(u64 value, int size, bool is_signed)
{
	switch (size) {
	case 1: return is_signed ? (u64)(s8)value : (u8)value;
	case 2: return is_signed ? (u64)(s16)value : (u16)value;
	case 4: return is_signed ? (u64)(s32)value : (u32)value;
	}
	return value;
}

/* Formats until the end; consumes `args` (by value of its array type: in place). */
static void put_format(struct output *out, const char *format, va_list args)
{
	for (; *format; format++) {
		struct spec spec = { .precision = -1 };
		const char *at;
		u64 value;

		if (*format != '%') {
			put(out, *format);
			continue;
		}
		at = parse_flags(&spec, format + 1);
		if (*at == '*') {
			spec.width = va_arg(args, int);
			spec.left |= spec.width < 0;
			spec.width = abs(spec.width);
			at++;
		} else {
			at = parse_digits(&spec.width, at);
		}
		if (*at == '.' && at[1] == '*') {
			spec.precision = max(va_arg(args, int), -1);
			at += 2;
		} else if (*at == '.') {
			at = parse_digits(&spec.precision, at + 1);
		}
		at = parse_size(&spec, at);
		switch (*at) {
		case '%':
			put(out, '%');
			break;
		case 'c': {
			char c = va_arg(args, int);

			put_text(out, &spec, &c, 1);
			break;
		}
		case 's':
			put_string(out, &spec, va_arg(args, const char *));
			break;
		case 'p':
			at += put_pointer(out, &spec, at + 1, va_arg(args, void *));
			break;
		case 'd': case 'i': case 'u': case 'x': case 'X': case 'o':
			value = spec.size == 8 ? va_arg(args, u64) : va_arg(args, u32);
			put_number(out, spec, narrow(value, spec.size, *at == 'd' || *at == 'i'),
				   *at == 'o' ? 8 : *at == 'x' || *at == 'X' ? 16 : 10,
				   *at == 'd' || *at == 'i', *at == 'X');
			break;
		default:
			/* The rest cannot be formatted: its arguments are out of step. */
			put(out, '<');
			while (*format)
				put(out, *format++);
			put(out, '>');
			return;
		}
		format = at;
	}
}

int vsnprintf(char *buffer, size_t size, const char *format, va_list args)
{
	struct output out = { .at = buffer, .end = size ? buffer + size - 1 : buffer };

	put_format(&out, format, args);
	if (size)
		*out.at = 0;
	return out.length;
}

int vscnprintf(char *buffer, size_t size, const char *format, va_list args)
{
	int length = vsnprintf(buffer, size, format, args);

	return size ? min_t(int, length, size - 1) : 0;
}

int snprintf(char *buffer, size_t size, const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(buffer, size, format, args);
	va_end(args);
	return length;
}

int scnprintf(char *buffer, size_t size, const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vscnprintf(buffer, size, format, args);
	va_end(args);
	return length;
}

int sprintf(char *buffer, const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(buffer, INT_MAX, format, args);
	va_end(args);
	return length;
}
