/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* flags: -femulated-tls -pthread */
/* compilers: clang */
#include "tls.h"
