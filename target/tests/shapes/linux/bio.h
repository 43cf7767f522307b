/* SPDX-License-Identifier: GPL-2.0 */
#include "shape.h"

#include "lib/pure.h"	/* its types */
