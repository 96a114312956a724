//! Scheduling policies of threads, and how much time they got.

use std::io;
use std::time::Duration;

use rustix::process::Pid;

/// How the kernel chooses among threads that want a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// What threads usually have.
    Other,
    /// After all others.
    Idle,
    /// One that somebody has chosen on purpose.
    Special,
}

/// Sets the policy of a thread of this process; `None` is the calling one.
///
/// # Errors
/// `PermissionDenied` where the way back from [`Policy::Idle`] is closed, `InvalidInput` for [`Policy::Special`].
#[expect(
    unsafe_code,
    reason = "docs/unsafe.md: there is no safe wrapper for this call"
)]
pub(crate) fn set_policy(thread: Option<Pid>, policy: Policy) -> io::Result<()> {
    let policy = match policy {
        Policy::Other => libc::SCHED_OTHER,
        Policy::Idle => libc::SCHED_IDLE,
        Policy::Special => return Err(io::ErrorKind::InvalidInput.into()),
    };
    let param = libc::sched_param { sched_priority: 0 };
    let thread = thread.map_or(0, |thread| thread.as_raw_nonzero().get());
    // SAFETY: the kernel only reads the parameter, which lives until the call is over.
    match unsafe { libc::sched_setscheduler(thread, policy, &raw const param) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The policy of the calling thread.
///
/// # Errors
/// Where the system does not say.
#[expect(
    unsafe_code,
    reason = "docs/unsafe.md: there is no safe wrapper for this call"
)]
pub(crate) fn policy() -> io::Result<Policy> {
    // SAFETY: the call takes a number and gives one.
    match unsafe { libc::sched_getscheduler(0) } {
        -1 => Err(io::Error::last_os_error()),
        libc::SCHED_OTHER => Ok(Policy::Other),
        libc::SCHED_IDLE => Ok(Policy::Idle),
        _ => Ok(Policy::Special),
    }
}

/// The processor time that a thread of this process has had.
///
/// # Errors
/// Where there is no such thread.
#[expect(
    unsafe_code,
    reason = "docs/unsafe.md: there is no safe wrapper for this clock"
)]
pub(crate) fn processor_time(thread: Pid) -> io::Result<Duration> {
    /// The kind of the clock: of one thread, as the scheduler counts.
    const THREAD: libc::clockid_t = 6;
    // The number of a thread's clock, as pthread_getcpuclockid(3) makes it.
    let clock = (!thread.as_raw_nonzero().get() << 3) | THREAD;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes to the time, which lives until the call is over, and refuses clocks that are not there.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } == -1 {
        return Err(io::Error::last_os_error());
    }
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Ok(Duration::from_secs(seconds)
        + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_policy_stays_until_another_comes() {
        assert_eq!(policy().unwrap(), Policy::Other);
        set_policy(None, Policy::Idle).unwrap();
        assert_eq!(policy().unwrap(), Policy::Idle);
        assert!(set_policy(None, Policy::Special).is_err());
        // The thread of this test ends here, with a policy of its own; who may not go back stays idle.
        if set_policy(Some(rustix::thread::gettid()), Policy::Other).is_ok() {
            assert_eq!(policy().unwrap(), Policy::Other);
        }
    }

    #[test]
    fn the_time_of_a_thread_grows_while_it_works() {
        let this = rustix::thread::gettid();
        let start = processor_time(this).unwrap();
        let mut sum = 0_u64;
        while processor_time(this).unwrap() <= start {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        // No system has processes of such numbers.
        assert!(processor_time(Pid::from_raw(1 << 23).unwrap()).is_err());
    }
}
