/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* flags: -ftls-model=local-exec -pthread */
#include "tls.h"
