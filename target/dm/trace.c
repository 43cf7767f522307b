// SPDX-License-Identifier: GPL-2.0
/*
 * Tracepoints: see trace.h.
 */
#include "zone/zones.h"

#define CREATE_TRACE_POINTS
#include "device/trace.h"
