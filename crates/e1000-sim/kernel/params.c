// SPDX-License-Identifier: GPL-2.0-only
/*
 * params.c: module parameters: integers and arrays of them, and "name=value"
 * lists as insmod takes.
 */
#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

#include "shim.h"

/* A number in decimal, 0x or 0 notation up to the end or `stop`. */
static int parse_number(const char *text, char stop, s64 *value)
{
	bool negative = *text == '-';
	unsigned int base = 10, digits = 0;

	text += negative;
	if (text[0] == '0' && (text[1] | 0x20) == 'x') {
		base = 16;
		text += 2;
	} else if (text[0] == '0' && text[1] != stop && text[1]) {
		base = 8;
	}
	for (*value = 0; *text && *text != stop && *text != '\n'; text++, digits++) {
		int digit = *text >= '0' && *text <= '9' ? *text - '0' : (*text | 0x20) - 'a' + 10;

		if (digit < 0 || digit >= (int)base || digits > 15)
			return -EINVAL;
		*value = *value * base + digit;
	}
	if (!digits)
		return -EINVAL;
	if (negative)
		*value = -*value;
	return 0;
}

static int set_int(const char *text, const struct kernel_param *param)
{
	s64 value;

	if (parse_number(text, ',', &value) || value != (int)value)
		return -EINVAL;
	*(int *)param->arg = value;
	return 0;
}

static int set_uint(const char *text, const struct kernel_param *param)
{
	s64 value;

	if (parse_number(text, ',', &value) || value != (unsigned int)value)
		return -EINVAL;
	*(unsigned int *)param->arg = value;
	return 0;
}

static int get_int(char *buffer, const struct kernel_param *param)
{
	return sprintf(buffer, "%d\n", *(int *)param->arg);
}

static int get_uint(char *buffer, const struct kernel_param *param)
{
	return sprintf(buffer, "%u\n", *(unsigned int *)param->arg);
}

const struct kernel_param_ops param_ops_int = { .set = set_int, .get = get_int };
const struct kernel_param_ops param_ops_uint = { .set = set_uint, .get = get_uint };

/* Elements are separated by commas. */
static int set_array(const char *text, const struct kernel_param *param)
{
	const struct kparam_array *array = param->arr;
	unsigned int count = 0;

	for (;; count++) {
		struct kernel_param element = {
			.name = param->name,
			.ops = array->ops,
			.arg = array->elem + count * array->elemsize,
		};
		int error;

		if (count == array->max)
			return -EINVAL;
		error = array->ops->set(text, &element);
		if (error)
			return error;
		text = strchr(text, ',');
		if (!text)
			break;
		text++;
	}
	if (array->num)
		*array->num = count + 1;
	return 0;
}

const struct kernel_param_ops param_array_ops = { .set = set_array };

static int set_named(const struct kernel_param *first, unsigned int count, const char *name,
		     size_t length, const char *value)
{
	unsigned int i;
	int error;

	for (i = 0; i < count; i++) {
		const struct kernel_param *param = &first[i];

		if (strlen(param->name) != length || strncmp(param->name, name, length))
			continue;
		error = param->ops->set(value, param);
		if (error)
			_printk(KERN_ERR "module: `%s' invalid for parameter `%s'\n", value,
				param->name);
		return error;
	}
	_printk(KERN_ERR "module: unknown parameter `%s'\n", name);
	return -ENOENT;
}

int params_parse(const struct kernel_param *first, unsigned int count, const char *arguments)
{
	while (*arguments) {
		const char *end = strchrnul(arguments, ' ');
		const char *equals = strchrnul(arguments, '=');
		char value[128];
		int error;

		if (end == arguments) {
			arguments++;
			continue;
		}
		if (equals >= end || end - equals > (long)sizeof(value))
			return -EINVAL;
		strscpy(value, equals + 1, end - equals);
		error = set_named(first, count, arguments, equals - arguments, value);
		if (error)
			return error;
		arguments = end;
	}
	return 0;
}
