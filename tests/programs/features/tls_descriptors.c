/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* flags: -mtls-dialect=gnu2 -fPIC -pie -pthread -ftls-model=global-dynamic */
/* compilers: gcc */
#include "tls.h"
