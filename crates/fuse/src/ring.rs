//! Requests through io_uring: one system call takes an answer and gives the next request.
//!
//! A [`Ring`] belongs to one thread and has one entry in one of the kernel's queues, of which there is one for each
//! processor: a process that asks is answered through the queue of the processor it runs on. So no two threads share a ring, and
//! a thread that is busy keeps nobody from the other entries of its queue.
//!
//! The kernel gives requests out once every queue has an entry; what it takes back (forgetting, interrupting) still comes
//! through the device. When it refuses an entry, all requests come through the device.

#![expect(
    unsafe_code,
    reason = "docs/unsafe.md: what is put into a ring refers to memory that the kernel writes to"
)]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use io_uring::cqueue::Entry as Completion;
use io_uring::opcode::UringCmd80;
use io_uring::squeue::Entry128;
use io_uring::{IoUring, types};
use rustix::io::Errno;

use crate::device::Device;
use crate::protocol::{OUT_HEADER_LEN, Reply, Shared, command, put_head, request_in};

/// Registers an entry.
const REGISTER: u32 = 1;

/// Answers a request, and asks for the next.
const COMMIT_AND_FETCH: u32 = 2;

/// A thread that had nothing to do for so long gives its memory back, at most twice that later.
const IDLE_SECONDS: u64 = 10;

/// The place of the device among the ring's registered files.
const DEVICE: types::Fixed = types::Fixed(0);

/// Parts of the memory of an entry: head and payload.
const PART_COUNT: u32 = 2;

/// A queue that no machine has, which the kernel refuses.
const NO_QUEUE: u16 = u16::MAX;

/// One entry of one queue.
pub(crate) struct Ring {
    uring: IoUring<Entry128, Completion>,
    /// In memory that is shared with the kernel.
    reply: Reply,
    /// Address and length of each part of that memory, as `readv` has them; the kernel reads it.
    parts: Box<[usize]>,
    queue: u16,
    /// With what the request is answered that came last.
    commit_id: u64,
    /// Whether the kernel may write to the memory.
    is_out: bool,
    /// Whether the memory was given back since the last request.
    is_small: bool,
}

/// What [`Ring::wait`] gives.
pub(crate) enum Fetched {
    /// A request of so many bytes.
    Request(usize),
    /// The connection has ended; the device says how.
    End,
}

/// How many queues the kernel has: one for each processor that there may be.
pub(crate) fn queue_count() -> io::Result<u16> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    count(text.trim()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// How many numbers are in a list such as `0-3,8`.
fn count(list: &str) -> Option<u16> {
    list.split(',').try_fold(0_u16, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u16>().ok()?, last.parse::<u16>().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

impl Ring {
    /// Makes one that asks for nothing yet. Payloads have up to `payload_max` bytes, as was agreed with the kernel.
    pub(crate) fn new(device: &Device, queue: u16, payload_max: usize) -> io::Result<Self> {
        let uring = IoUring::<Entry128, Completion>::builder()
            // Only the thread that enables it uses it, and requests come when it waits for them.
            .setup_r_disabled()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .dontfork()
            .build(2)?;
        let files = [device.as_fd().as_raw_fd()];
        uring.submitter().register_files(&files)?;
        let mut shared = Shared::new(payload_max)?;
        let parts = shared.parts();
        let parts = parts.map(|(base, len)| [base.expose_provenance(), len]);
        Ok(Self {
            uring,
            reply: Reply::in_shared(shared),
            parts: parts.concat().into(),
            queue,
            commit_id: 0,
            is_out: false,
            is_small: false,
        })
    }

    /// The queue that the entry is in.
    pub(crate) fn queue(&self) -> u16 {
        self.queue
    }

    /// Makes the calling thread the one that uses it.
    pub(crate) fn enable(&self) -> io::Result<()> {
        self.uring.submitter().register_enable_rings()
    }

    /// Registers the entry.
    ///
    /// # Errors
    /// When the kernel refuses, or has the entry already.
    pub(crate) fn register(&mut self) -> io::Result<()> {
        if self.is_out {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        self.ask(REGISTER)?;
        self.uring.submit()?;
        // A refusal is there at once; requests come only when they are waited for.
        let completion = self.uring.completion().next();
        match completion {
            None => Ok(()),
            Some(completion) => {
                self.is_out = false;
                Err(error_of(completion.result()).unwrap_or(Errno::INVAL).into())
            }
        }
    }

    /// Has the kernel refuse an entry, after which it uses the device.
    pub(crate) fn be_refused(mut self) -> io::Result<()> {
        self.queue = NO_QUEUE;
        self.enable()?;
        match self.register() {
            Ok(()) => Err(io::Error::other("an entry in a queue that is not there")),
            Err(_) => Ok(()),
        }
    }

    /// Has the kernel refuse it when it is registered.
    #[cfg(test)]
    pub(crate) fn spoil(&mut self) {
        self.queue = NO_QUEUE;
    }

    /// Where the answer is made.
    pub(crate) fn reply(&mut self) -> &mut Reply {
        &mut self.reply
    }

    /// Waits for a request and puts it into `buf`.
    pub(crate) fn wait(&mut self, buf: &mut [u8]) -> io::Result<Fetched> {
        loop {
            let completion = self.uring.completion().next();
            if let Some(completion) = completion {
                self.is_out = false;
                return self.fetched(completion.result(), buf);
            }
            if self.is_small {
                match self.uring.submit_and_wait(1) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    submitted => drop(submitted?),
                }
            } else if self.is_idle()? {
                self.give_back();
            }
        }
    }

    /// Waits for a request, but not for long; true if none came.
    fn is_idle(&mut self) -> io::Result<bool> {
        let time = types::Timespec::new().sec(IDLE_SECONDS);
        let arguments = types::SubmitArgs::new().timespec(&time);
        self.uring.submission().sync();
        let submitted = self.uring.submitter().submit_with_args(1, &arguments);
        match submitted {
            Err(error) if error.raw_os_error() == Some(Errno::TIME.raw_os_error()) => {
                Ok(self.uring.completion().is_empty())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            submitted => submitted.map(|_| false),
        }
    }

    /// Gives the pages of the memory back to the system: a thread that is not needed shall not hold a megabyte.
    fn give_back(&mut self) {
        self.is_small = true;
        if let Some(shared) = self.reply.shared() {
            // SAFETY: nothing refers to the memory, whose contents nobody needs: no request has come. The kernel writes one there
            // only while this thread waits for it.
            unsafe { shared.discard() };
        }
    }

    /// Answers the request with what is in the reply; [`Self::wait`] sends it. Gives the bytes of the answer.
    pub(crate) fn commit(&mut self, unique: u64, result: Result<(), Errno>) -> io::Result<usize> {
        let answer_len = self.reply.finish(unique, result);
        let payload_len = answer_len.saturating_sub(OUT_HEADER_LEN);
        let answer = self.reply.in_one_piece().unwrap_or_default();
        let header = answer.first_chunk().copied().unwrap_or_default();
        if let Some(shared) = self.reply.shared() {
            put_head(shared.head_mut(), header, payload_len);
        }
        self.ask(COMMIT_AND_FETCH)?;
        Ok(answer_len)
    }

    fn fetched(&mut self, result: i32, buf: &mut [u8]) -> io::Result<Fetched> {
        match error_of(result) {
            None => {}
            Some(Errno::NOTCONN | Errno::NODEV | Errno::CONNABORTED | Errno::CANCELED) => {
                return Ok(Fetched::End);
            }
            Some(errno) => return Err(errno.into()),
        }
        let request = self.reply.shared().and_then(|shared| {
            let (head, payload) = shared.request();
            request_in(head, payload, buf)
        });
        let (len, commit_id) = request.ok_or(io::ErrorKind::InvalidData)?;
        self.commit_id = commit_id;
        self.is_small = false;
        Ok(Fetched::Request(len))
    }

    /// Puts a command into the ring.
    fn ask(&mut self, operation: u32) -> io::Result<()> {
        let entry = UringCmd80::new(DEVICE, operation)
            .cmd(command(self.commit_id, self.queue))
            .addr(Some(self.parts.as_ptr().expose_provenance() as u64))
            .build();
        let entry = with_len(entry, PART_COUNT);
        // SAFETY: what the entry refers to, the list of parts and the memory that they describe, is not moved and not freed
        // while the command is out (see `drop`), and nobody looks at that memory until the command has come back.
        let pushed = unsafe { self.uring.submission().push(&entry) };
        pushed.map_err(io::Error::other)?;
        self.is_out = true;
        Ok(())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.is_out {
            // The kernel may still write there: better lost than given to somebody else.
            std::mem::forget(std::mem::take(&mut self.reply));
            std::mem::forget(std::mem::take(&mut self.parts));
        }
    }
}

/// The error that a command has come back with.
fn error_of(result: i32) -> Option<Errno> {
    (result < 0).then(|| Errno::from_raw_os_error(result.saturating_neg()))
}

/// Sets the length of what the address of an entry refers to, for which the library has no call.
fn with_len(mut entry: Entry128, len: u32) -> Entry128 {
    const LEN_AT: usize = 24;
    const { assert!(size_of::<Entry128>() == 128 && align_of::<Entry128>() >= 4) };
    // SAFETY: an entry is the kernel's `struct io_uring_sqe` of 128 bytes, aligned for it, with an integer of 32 bits there.
    unsafe {
        std::ptr::from_mut(&mut entry)
            .byte_add(LEN_AT)
            .cast::<u32>()
            .write(len)
    };
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_processors() {
        for (list, expected) in [
            ("0", Some(1)),
            ("0-7", Some(8)),
            ("0-3,8-11,13", Some(9)),
            ("", None),
            ("3-1", None),
            ("0-65535", None),
        ] {
            assert_eq!(count(list), expected, "{list}");
        }
    }

    #[test]
    fn only_the_length_changes() {
        let entry = UringCmd80::new(DEVICE, REGISTER).addr(Some(5)).build();
        let plain = format!("{entry:?}");
        assert_eq!(format!("{:?}", with_len(entry, 0)), plain);
    }
}
