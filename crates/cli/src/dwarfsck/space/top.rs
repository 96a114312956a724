//! The largest of many, without keeping all of them.

use std::cmp::Reverse;

/// Keeps the items with the largest keys. Of equal keys those that came first stay, so that the result is always the same.
pub(super) struct Top<T> {
    count_max: usize,
    /// Key, number of arrival, item.
    items: Vec<(u64, usize, T)>,
    arrived: usize,
}

impl<T> Top<T> {
    pub(super) fn new(count_max: usize) -> Self {
        Self {
            count_max,
            items: Vec::new(),
            arrived: 0,
        }
    }

    /// Offers an item, which is made only if it may stay. Keys of zero are not worth showing.
    pub(super) fn offer(&mut self, key: u64, make: impl FnOnce() -> T) {
        self.arrived += 1;
        if key == 0 {
            return;
        }
        if self.items.len() >= 2 * self.count_max + 16 {
            self.cut();
        }
        self.items.push((key, self.arrived, make()));
    }

    fn cut(&mut self) {
        self.items
            .sort_unstable_by_key(|(key, arrived, _)| (Reverse(*key), *arrived));
        self.items.truncate(self.count_max);
    }

    /// The largest first.
    pub(super) fn finish(mut self) -> Vec<T> {
        self.cut();
        self.items.into_iter().map(|(_, _, item)| item).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Top;

    #[test]
    fn the_largest_stay_and_the_earlier_of_equals() {
        let mut top = Top::new(3);
        for index in 0..1000_u64 {
            top.offer(index % 100, || index);
        }
        assert_eq!(top.finish(), [99, 199, 299]);
        let mut top = Top::new(3);
        top.offer(0, || 0);
        assert_eq!(top.finish(), [0; 0]);
    }
}
