//! The connection to the kernel: one read gives a request, one write takes an answer.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::ioctl::{Setter, ioctl, opcode};

use crate::protocol::{IN_HEADER_LEN, Reply};

/// The name of the device.
pub(crate) const PATH: &str = "/dev/fuse";

/// The largest request that can come: those with data would be for writing, which the kernel is told to send a page of
/// at most. Less than 8 KiB the kernel does not take.
pub(crate) const REQUEST_LEN_MAX: usize = WRITE_MAX as usize + 4096;

/// Bytes of data in a request; the kernel takes no less.
pub(crate) const WRITE_MAX: u32 = 4096;

const _: () = assert!(REQUEST_LEN_MAX >= 8192 && REQUEST_LEN_MAX > IN_HEADER_LEN);

/// A descriptor of the device that belongs to one mount.
#[derive(Debug)]
pub(crate) struct Device(OwnedFd);

/// What came instead of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The file system is unmounted and its last user has gone, or `umount -f` has cut the connection.
    Unmounted,
    /// Somebody has cut the connection with the `abort` file in `/sys/fs/fuse/connections`.
    Aborted,
}

/// What [`Device::receive`] gives.
pub(crate) enum Received {
    /// A request of so many bytes.
    Request(usize),
    End(End),
}

impl Device {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Opens another descriptor of the same mount: a queue of its own for answers, with locks of its own.
    pub(crate) fn duplicate(&self) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(PATH)?;
        let original = u32::try_from(self.0.as_raw_fd()).map_err(io::Error::other)?;
        clone_into(&file, original)?;
        Ok(Self(file.into()))
    }

    /// Whether a request waits to be taken. If that cannot be said, none does.
    pub(crate) fn has_request(&self) -> bool {
        let mut polled = [PollFd::new(&self.0, PollFlags::IN)];
        rustix::event::poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// Waits for a request and puts it into `buf`.
    pub(crate) fn receive(&self, buf: &mut [u8]) -> io::Result<Received> {
        loop {
            match rustix::io::read(&self.0, &mut *buf) {
                // The request was taken back before we got it, or a signal came.
                Err(Errno::NOENT | Errno::INTR | Errno::AGAIN) => {}
                read => return received(read),
            }
        }
    }

    /// Looks for a request until some time; `None` if there was none. For who has this descriptor for himself.
    pub(crate) fn watch(&self, buf: &mut [u8], until: Instant) -> io::Result<Option<Received>> {
        // Setting and resetting this takes some tenths of a microsecond; waking a thread that sleeps takes tens of them.
        fcntl_setfl(&self.0, OFlags::RDWR | OFlags::NONBLOCK)?;
        let watched = loop {
            match rustix::io::read(&self.0, &mut *buf) {
                Err(Errno::NOENT | Errno::INTR | Errno::AGAIN) => {
                    if Instant::now() >= until {
                        break None;
                    }
                    // The client may be on this processor.
                    std::thread::yield_now();
                }
                read => break Some(received(read)),
            }
        };
        fcntl_setfl(&self.0, OFlags::RDWR)?;
        watched.transpose()
    }

    /// Sends an answer.
    pub(crate) fn send(&self, reply: &Reply) -> io::Result<()> {
        match reply.in_one_piece() {
            Some(bytes) => sent(|| rustix::io::write(&self.0, bytes)),
            None => {
                let pieces: Vec<IoSlice<'_>> = reply.pieces();
                sent(|| rustix::io::writev(&self.0, &pieces))
            }
        }
    }
}

/// Writes an answer, which the kernel takes as a whole.
fn sent(mut write: impl FnMut() -> rustix::io::Result<usize>) -> io::Result<()> {
    loop {
        match write() {
            Err(Errno::INTR) => {}
            written => return written.map(drop).map_err(Into::into),
        }
    }
}

/// What a read of the device gave.
fn received(read: rustix::io::Result<usize>) -> io::Result<Received> {
    match read {
        Ok(len) => Ok(Received::Request(len)),
        Err(Errno::NODEV) => Ok(Received::End(End::Unmounted)),
        Err(Errno::CONNABORTED) => Ok(Received::End(End::Aborted)),
        Err(errno) => Err(errno.into()),
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Makes `file`, a new descriptor of the device, one of the mount that `original` belongs to.
#[expect(
    unsafe_code,
    reason = "docs/unsafe.md: there is no safe wrapper for this ioctl"
)]
fn clone_into(file: &File, original: u32) -> rustix::io::Result<()> {
    // SAFETY: the request FUSE_DEV_IOC_CLONE takes a pointer to one u32, which is what is given.
    let request = unsafe { Setter::<{ opcode::read::<u32>(229, 0) }, u32>::new(original) };
    // SAFETY: the kernel only reads that u32, and checks that it is a descriptor of the device.
    unsafe { ioctl(file, request) }
}
