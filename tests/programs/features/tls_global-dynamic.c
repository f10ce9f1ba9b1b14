/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* flags: -ftls-model=global-dynamic -pthread -fPIC -pie */
#include "tls.h"
