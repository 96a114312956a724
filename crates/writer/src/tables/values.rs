//! Tables of the values that attributes take.

use std::collections::HashMap;

use crate::tree::count_of;

/// Distinct values in the order in which they were met.
#[derive(Clone, Debug, Default)]
pub struct Values {
    /// The table.
    pub values: Vec<u32>,
    places: HashMap<u32, u32>,
}

impl Values {
    /// Returns the place of `value`, which becomes the last if it is new.
    pub fn place(&mut self, value: u32) -> u32 {
        let next = count_of(self.values.len());
        let values = &mut self.values;
        *self.places.entry(value).or_insert_with(|| {
            values.push(value);
            next
        })
    }
}
