// SPDX-License-Identifier: GPL-2.0-only
/*
 * locks.c: mutexes, the rare sleeping locks. hot.o has spin locks.
 *
 * A mutex holds its owner's task_struct, as the kernel's does; a sleeper tries
 * again at each step. Task context only. If the owner is a task that runs on another
 * CPU, the wait takes real time; if it is a sleeping task of any CPU, that one runs.
 */
#include <linux/mutex.h>

#include "shim.h"

void __mutex_init(struct mutex *lock, const char *name, struct lock_class_key *key)
{
	memset(lock, 0, sizeof(*lock));
	INIT_LIST_HEAD(&lock->wait_list);
}

int mutex_trylock(struct mutex *lock)
{
	return atomic_long_cmpxchg_acquire(&lock->owner, 0, (long)current) == 0;
}

void mutex_lock(struct mutex *lock)
{
	u64 since = time_now();

	task_may_sleep(__func__);
	while (!mutex_trylock(lock)) {
		if (atomic_long_read(&lock->owner) == (long)current)
			kernel_bug("mutex %p: locked again by its owner %s", lock, current->comm);
		task_wait_step(__func__, since);
	}
}

void mutex_unlock(struct mutex *lock)
{
	if (atomic_long_read(&lock->owner) != (long)current)
		kernel_bug("mutex %p: unlocked by %s, who does not hold it", lock, current->comm);
	atomic_long_set_release(&lock->owner, 0);
}
