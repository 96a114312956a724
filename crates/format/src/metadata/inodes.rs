//! The inodes of the owned metadata, kept by columns.
//!
//! An [`InodeData`] has 14 numbers, most of which are 0 or small in nearly all images. A million of them take 88 MB as
//! structs and some 10 MB as columns that are as wide as their largest value needs, which is what this is for.

use super::model::InodeData;

/// How many numbers an inode has.
const COLUMN_COUNT: usize = 14;

/// A list of inodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inodes {
    columns: [Column; COLUMN_COUNT],
    len: usize,
}

/// Numbers, each of them `width` bytes long: 0 as long as all are 0, then 1, 2, 4 or 8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Column {
    width: usize,
    bytes: Vec<u8>,
}

impl Inodes {
    /// Appends an inode.
    pub fn push(&mut self, inode: &InodeData) {
        for (column, value) in self.columns.iter_mut().zip(numbers_of(inode)) {
            column.push(value, self.len);
        }
        self.len += 1;
    }

    /// Returns how many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns one by its number.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<InodeData> {
        let numbers = || self.columns.each_ref().map(|column| column.get(index));
        (index < self.len).then(|| from_numbers(numbers()))
    }

    /// Returns all in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = InodeData> {
        (0..self.len).map(|index| self.get(index).unwrap_or_default())
    }
}

impl FromIterator<InodeData> for Inodes {
    fn from_iter<T: IntoIterator<Item = InodeData>>(inodes: T) -> Self {
        let mut list = Self::default();
        list.extend(inodes);
        list
    }
}

impl Extend<InodeData> for Inodes {
    fn extend<T: IntoIterator<Item = InodeData>>(&mut self, inodes: T) {
        inodes.into_iter().for_each(|inode| self.push(&inode));
    }
}

impl Column {
    /// Appends to a column of `len` numbers.
    fn push(&mut self, value: u64, len: usize) {
        let needed = bytes_needed(value);
        if needed > self.width {
            let mut wider = Self {
                width: needed,
                bytes: Vec::with_capacity((len + 1) * needed),
            };
            (0..len).for_each(|index| wider.append(self.get(index)));
            *self = wider;
        }
        self.append(value);
    }

    fn append(&mut self, value: u64) {
        let bytes = value.to_le_bytes();
        self.bytes
            .extend_from_slice(bytes.get(..self.width).unwrap_or(&bytes));
    }

    fn get(&self, index: usize) -> u64 {
        let start = index * self.width;
        let mut bytes = [0; 8];
        let stored = self.bytes.get(start..start + self.width);
        for (to, from) in bytes.iter_mut().zip(stored.unwrap_or_default()) {
            *to = *from;
        }
        u64::from_le_bytes(bytes)
    }
}

/// Returns the bytes that hold `value`, as a power of two; none for 0.
fn bytes_needed(value: u64) -> usize {
    let bytes = (u64::BITS - value.leading_zeros()).div_ceil(u8::BITS);
    match bytes {
        0 => 0,
        1 => 1,
        2 => 2,
        3 | 4 => 4,
        _ => 8,
    }
}

fn numbers_of(inode: &InodeData) -> [u64; COLUMN_COUNT] {
    // Names all fields, so that a new one cannot be forgotten.
    let InodeData {
        mode_index,
        owner_index,
        group_index,
        atime_offset,
        mtime_offset,
        ctime_offset,
        btime_offset,
        atime_subsec,
        mtime_subsec,
        ctime_subsec,
        btime_subsec,
        nlink_minus_one,
        name_index_v2_2,
        inode_v2_2,
    } = *inode;
    [
        mode_index.into(),
        owner_index.into(),
        group_index.into(),
        atime_offset,
        mtime_offset,
        ctime_offset,
        btime_offset,
        atime_subsec,
        mtime_subsec,
        ctime_subsec,
        btime_subsec,
        nlink_minus_one.into(),
        name_index_v2_2.into(),
        inode_v2_2.into(),
    ]
}

fn from_numbers(numbers: [u64; COLUMN_COUNT]) -> InodeData {
    // They came from numbers of 32 bits.
    let short = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let [mode, owner, group, atime, mtime, ctime, btime, rest @ ..] = numbers;
    let [
        atime_subsec,
        mtime_subsec,
        ctime_subsec,
        btime_subsec,
        nlink,
        name,
        inode,
    ] = rest;
    InodeData {
        mode_index: short(mode),
        owner_index: short(owner),
        group_index: short(group),
        atime_offset: atime,
        mtime_offset: mtime,
        ctime_offset: ctime,
        btime_offset: btime,
        atime_subsec,
        mtime_subsec,
        ctime_subsec,
        btime_subsec,
        nlink_minus_one: short(nlink),
        name_index_v2_2: short(name),
        inode_v2_2: short(inode),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn all_numbers_come_back() {
        let numbers: [u64; COLUMN_COUNT] = [
            1,
            300,
            70_000,
            u64::MAX,
            5,
            1 << 33,
            7,
            8,
            9,
            10,
            11,
            12,
            13,
            u32::MAX.into(),
        ];
        assert_eq!(numbers_of(&from_numbers(numbers)), numbers);
    }

    #[test]
    fn columns_widen_as_they_must() {
        let values = [0, 0, 255, 0, 256, 65_536, 7, u64::MAX];
        let inode = |mtime_offset| InodeData {
            mtime_offset,
            ..InodeData::default()
        };
        let list: Inodes = values.into_iter().map(inode).collect();
        assert_eq!((list.len(), list.is_empty()), (8, false));
        let back: Vec<u64> = list.iter().map(|inode| inode.mtime_offset).collect();
        assert_eq!(back, values);
        assert_eq!(list.get(8), None);
        let used: usize = list.columns.iter().map(|column| column.bytes.len()).sum();
        assert_eq!(used, 64, "only the column of the time takes memory");
    }
}
