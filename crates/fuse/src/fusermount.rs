//! Mounting through `fusermount3`, the setuid program that lets everybody mount FUSE file systems.
//!
//! It takes options and mount point as arguments, and sends the descriptor of the device over a socket whose number stands
//! in its environment. Source: fuse.ko's user-space convention, mount.fuse3(8) and fusermount3(1).

use std::io::{self, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use durin_format::{Error, Result};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

use crate::kernel_mount::Unmounted;
use crate::options::{MountOptions, escape};

const PROGRAM: &str = "fusermount3";

/// Where the program finds the number of its end of the socket.
const SOCKET_VARIABLE: &str = "_FUSE_COMMFD";

/// What it may say on standard error; more is not read.
const MESSAGE_BYTES_MAX: u64 = 4096;

/// Mounts at `path`; returns the connection to the kernel and, with `auto_unmount`, the program's leash.
///
/// # Errors
/// `Io` if the program is missing or refuses, with what it said.
pub(crate) fn mount(path: &Path, options: &MountOptions) -> Result<(OwnedFd, Option<UnixStream>)> {
    let (ours, theirs) =
        UnixStream::pair().map_err(|error| Error::io("cannot make a socket", error))?;
    let mut child = Command::new(PROGRAM)
        .arg("-o")
        .arg(option_list(options))
        .arg("--")
        .arg(path)
        // The socket becomes the program's standard input: that needs no unsafe code between fork and exec.
        .env(SOCKET_VARIABLE, "0")
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(not_started)?;
    match receive(&ours) {
        // With a leash the program stays, holding it.
        Ok(Some(fd)) if options.auto_unmount => Ok((fd, Some(ours))),
        Ok(Some(fd)) => {
            child
                .wait()
                .map_err(|error| Error::io(format!("waiting for {PROGRAM}"), error))?;
            Ok((fd, None))
        }
        Ok(None) => Err(refused(&mut child, "mount")),
        Err(error) => Err(Error::io(format!("cannot hear from {PROGRAM}"), error)),
    }
}

/// Unmounts; when it is busy, it is taken out of sight until its last user has gone, if `lazily`.
///
/// # Errors
/// `Io` if the program is missing or refuses, with what it said.
pub(crate) fn unmount(path: &Path, lazily: bool) -> Result<Unmounted> {
    match run_unmount(path, &["-u"]) {
        Ok(()) => return Ok(Unmounted::Clean),
        Err(error) if !lazily => return Err(error),
        Err(_) => {}
    }
    run_unmount(path, &["-u", "-z"]).map(|()| Unmounted::Detached)
}

fn run_unmount(path: &Path, arguments: &[&str]) -> Result<()> {
    let mut child = Command::new(PROGRAM)
        .args(arguments)
        .arg("--")
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(not_started)?;
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        _ => Err(refused(&mut child, "unmount")),
    }
}

fn option_list(options: &MountOptions) -> String {
    let mut list = vec![
        format!("fsname={}", escape(&options.fsname)),
        format!("subtype={}", escape(&options.subtype)),
    ];
    let flags = [
        (options.ro, "ro"),
        (!options.dev, "nodev"),
        (!options.suid, "nosuid"),
        (!options.exec, "noexec"),
        (!options.symfollow, "nosymfollow"),
        (options.dev, "dev"),
        (options.suid, "suid"),
        (options.default_permissions, "default_permissions"),
        (options.allow_other || options.allow_root, "allow_other"),
        (options.auto_unmount, "auto_unmount"),
    ];
    list.extend(
        flags
            .iter()
            .filter(|(is_set, _)| *is_set)
            .map(|(_, name)| (*name).to_owned()),
    );
    if let Some(len) = options.max_read {
        list.push(format!("max_read={len}"));
    }
    list.extend(options.extra.iter().map(|option| escape(option)));
    list.join(",")
}

/// Returns the descriptor that the program sends, or `None` if it ends without.
fn receive(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    loop {
        let mut parts = [IoSliceMut::new(&mut byte)];
        match rustix::net::recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Ok(_) => break,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    let received = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok(received)
}

fn not_started(error: io::Error) -> Error {
    let text = match error.kind() {
        io::ErrorKind::NotFound => format!(
            "mounting as an ordinary user needs the program {PROGRAM} (package fuse3), which is not installed"
        ),
        _ => format!("cannot start {PROGRAM}"),
    };
    Error::io(text, error)
}

fn refused(child: &mut Child, what: &str) -> Error {
    let mut message = String::new();
    if let Some(stderr) = child.stderr.take() {
        // Whatever could be read is the best explanation there is.
        stderr
            .take(MESSAGE_BYTES_MAX)
            .read_to_string(&mut message)
            .ok();
    }
    child.wait().ok();
    let error = io::Error::other(message.trim().replace('\n', "; "));
    Error::io(format!("{PROGRAM} refused to {what}"), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_list_escapes_what_would_split_it() {
        let options = MountOptions {
            fsname: "/a,b.dwarfs".to_owned(),
            allow_root: true,
            exec: false,
            ..MountOptions::default()
        };
        assert_eq!(
            option_list(&options),
            r"fsname=/a\,b.dwarfs,subtype=dwarfs,ro,nodev,nosuid,noexec,allow_other"
        );
    }
}
