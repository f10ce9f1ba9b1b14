/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* flags: -ftls-model=initial-exec -pthread */
#include "tls.h"
