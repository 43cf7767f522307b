// SPDX-License-Identifier: GPL-2.0
/*
 * Tracepoints: see trace.h.
 */
#include "zone.h"

#define CREATE_TRACE_POINTS
#include "trace.h"
