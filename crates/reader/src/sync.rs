//! Locks, in one place so that a test build can swap them.
//!
//! A thread that panicked while holding one of our locks left a cache behind and no half-made invariant,
//! so poisoning is ignored.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

/// Can be handed over to those who wait for it (`RwLockWriteGuard::bump`). One of the standard library goes to whoever asks
/// first when it is given up: to a thread that takes it again and again, and not to those that have to be woken.
pub(crate) use parking_lot::{RwLock, RwLockWriteGuard};

use std::time::Duration;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits to be notified, for `time` at most.
pub(crate) fn wait_for<'a, T>(
    changed: &Condvar,
    guard: MutexGuard<'a, T>,
    time: Duration,
) -> MutexGuard<'a, T> {
    let waited = changed.wait_timeout(guard, time);
    waited.unwrap_or_else(PoisonError::into_inner).0
}
