// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * guest.c for the host itself: a test program's work() on its own cores, each
 * thread bound to one. A nanosecond is a tick of its clock then.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "guest.h"

int cpus;

static pthread_barrier_t together;

void say(const char *name, int count, const uint32_t *numbers)
{
	printf("%s", name);
	for (int i = 0; i < count; i++)
		printf(" %u", numbers[i]);
	printf("\n");
}

static void *start(void *id)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((long)id, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		exit(1);
	pthread_barrier_wait(&together);
	work((long)id);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[MAX_CPUS];

	cpus = argc > 1 ? atoi(argv[1]) : 1;
	pthread_barrier_init(&together, NULL, cpus);
	for (long i = 0; i < cpus; i++)
		pthread_create(&threads[i], NULL, start, (void *)i);
	for (int i = 0; i < cpus; i++)
		pthread_join(threads[i], NULL);
	report();
	return 0;
}
