//! Mounting DwarFS images.
//!
//! [`fs`] answers by node number without a kernel, `adapter` and `protocol` speak the FUSE protocol, `server` has the
//! threads, [`session`] mounts and unmounts. Everything is read-only, may be asked from any number of threads, and nothing an image or the kernel says can
//! make it panic: damage shows as `EIO` for that file.
//!
//! ```no_run
//! use std::{path::Path, sync::Arc};
//! use durin_format::events::Quiet;
//! use durin_fuse::{FsOptions, MountOptions};
//! use durin_reader::{Image, ImageOptions};
//!
//! # fn main() -> durin_format::Result<()> {
//! let source = durin_source::open(Path::new("tree.dwarfs"), durin_source::OpenMode::Mmap)?;
//! let image = Arc::new(Image::open(source, &ImageOptions::default())?);
//! let session = durin_fuse::mount(
//!     image,
//!     Path::new("/mnt"),
//!     &FsOptions::default(),
//!     &MountOptions::default(),
//!     Arc::new(Quiet),
//! )?;
//! session.run() // returns after `umount /mnt`
//! # }
//! ```

mod access_log;
mod adapter;
mod device;
pub mod errno;
mod folding;
pub mod fs;
mod fusermount;
mod kernel_mount;
pub mod mount_table;
pub mod node;
pub mod options;
mod protocol;
mod ring;
mod scheduling;
mod server;
pub mod session;
mod walkers;
mod xattr;

pub use access_log::AccessLog;
pub use kernel_mount::{Unmounted, unmount};
pub use options::{FsOptions, MountOptions};
pub use session::{Session, Unmounter, mount};
