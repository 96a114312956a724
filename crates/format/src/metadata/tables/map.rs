//! Maps of integers, looked up in place.

use crate::Result;
use crate::frozen::view::{Column, Object};

/// A map from u32 to integers: pairs in ascending order of their keys.
///
/// That they are in order is not checked: a map that is not gives [`None`] for some of its keys, nothing worse.
#[derive(Clone, Copy, Debug, Default)]
pub struct MapView {
    keys: Column,
    values: Column,
}

/// `reg_file_size_cache`: sizes of files that consist of many chunks, by content number.
#[derive(Clone, Copy, Debug, Default)]
pub struct SizeCacheView {
    /// Files of fewer chunks are not in the cache.
    pub min_chunk_count: u64,
    /// Sizes in bytes.
    pub size: MapView,
    /// Sizes without holes in bytes, where they differ.
    pub allocated: MapView,
}

impl MapView {
    /// Finds a map from u32 to integers of at most `value_bits_max` bits.
    pub(super) fn resolve(object: Object<'_>, value_bits_max: u32) -> Result<Self> {
        let list = object.list()?;
        let column = |id, name: &str, bits_max| {
            list.field_column(id, bits_max)
                .map_err(|error| error.context(name))
        };
        Ok(Self {
            keys: column(1, "key", u32::BITS)?,
            values: column(2, "value", value_bits_max)?,
        })
    }

    /// Returns the number of pairs.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.keys.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the value of `key`, by binary search.
    #[must_use]
    pub fn get(&self, data: &[u8], key: u32) -> Option<u64> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.keys.get_u32(data, middle)?.cmp(&key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return self.values.get(data, middle),
            }
        }
        None
    }

    /// Returns all pairs as they are stored.
    pub fn iter<'d>(&self, data: &'d [u8]) -> impl Iterator<Item = (u32, u64)> + use<'d> {
        let map = *self;
        (0..map.len()).map_while(move |index| {
            Some((map.keys.get_u32(data, index)?, map.values.get(data, index)?))
        })
    }
}

impl SizeCacheView {
    pub(super) fn resolve(object: Object<'_>) -> Result<Self> {
        let map = |object| MapView::resolve(object, u64::BITS);
        Ok(Self {
            size: object.read(1, "size_lookup", map)?,
            min_chunk_count: object.read(2, "min_chunk_count", |o| o.u64())?,
            allocated: object.read(3, "allocated_size_lookup", map)?,
        })
    }
}
