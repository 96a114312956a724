//! `-o mlock`: keeping the metadata in memory.

use std::sync::Arc;

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

/// Keeps the image, and with it the locked memory, alive.
pub(super) struct Locked(#[expect(dead_code, reason = "held for its lifetime")] Arc<Image>);

/// Locks the metadata of `image` as `wanted` says.
pub(super) fn apply(
    wanted: MemoryLock,
    image: &Arc<Image>,
    logger: &Logger,
) -> Result<Option<Locked>, Error> {
    if wanted == MemoryLock::None {
        return Ok(None);
    }
    let (_, metadata) = image.tables();
    match (system::lock_in_memory(metadata), wanted) {
        (Ok(()), _) => Ok(Some(Locked(Arc::clone(image)))),
        (Err(error), MemoryLock::Must) => {
            Err(Error::io("cannot lock the metadata in memory", error))
        }
        (Err(error), _) => {
            logger.warn(format!("cannot lock the metadata in memory: {error}"));
            Ok(None)
        }
    }
}
