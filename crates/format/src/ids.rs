//! Numbers that must not be mixed up.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// The number of an inode inside the image; 0 is the root directory.
    InodeNum
}
id! {
    /// The place of a block among the sections of type `BLOCK`, in file order.
    BlockIndex
}
id! {
    /// The place of a section among all sections, in file order.
    SectionNum
}
