//! `-o mlock`: keeping the metadata in memory.

use durin_format::Error;
use durin_reader::Image;

use crate::common::logger::Logger;
use crate::common::system;

/// Whether the metadata is locked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum MemoryLock {
    /// Not at all.
    #[default]
    None,
    /// If the system allows.
    Try,
    /// Or the mount fails.
    Must,
}

/// Locks the metadata of `image` as `wanted` says.
pub(super) fn apply(wanted: MemoryLock, image: &Image, logger: &Logger) -> Result<(), Error> {
    if wanted == MemoryLock::None {
        return Ok(());
    }
    let (_, metadata) = image.tables();
    match (system::lock_in_memory(metadata), wanted) {
        (Ok(()), _) => Ok(()),
        (Err(error), MemoryLock::Must) => {
            Err(Error::io("cannot lock the metadata in memory", error))
        }
        (Err(error), _) => {
            logger.warn(format!("cannot lock the metadata in memory: {error}"));
            Ok(())
        }
    }
}
