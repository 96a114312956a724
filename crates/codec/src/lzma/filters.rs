//! What is done to data before they are compressed, by our encoder or by the library.

use std::num::NonZeroU8;

use durin_lzma2 as lzma2;
use liblzma_sys as sys;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    /// One that our encoder has, too.
    Ours(lzma2::Filter),
    Ia64,
}

/// Filters for machine code by their names.
pub(super) const BINARIES: [(&str, Filter); 7] = [
    ("x86", Filter::Ours(lzma2::Filter::X86)),
    ("powerpc", Filter::Ours(lzma2::Filter::PowerPc)),
    ("ia64", Filter::Ia64),
    ("arm", Filter::Ours(lzma2::Filter::Arm)),
    ("armthumb", Filter::Ours(lzma2::Filter::ArmThumb)),
    ("arm64", Filter::Ours(lzma2::Filter::Arm64)),
    ("sparc", Filter::Ours(lzma2::Filter::Sparc)),
];

impl Filter {
    pub(super) fn delta(distance: NonZeroU8) -> Self {
        Self::Ours(lzma2::Filter::Delta(distance))
    }

    pub(super) fn ours(self) -> Option<lzma2::Filter> {
        match self {
            Self::Ours(filter) => Some(filter),
            Self::Ia64 => None,
        }
    }

    /// What the library calls it.
    pub(super) fn id(self) -> sys::lzma_vli {
        match self {
            Self::Ours(filter) => filter.id().into(),
            Self::Ia64 => sys::LZMA_FILTER_IA64,
        }
    }

    /// The distance of a Delta filter.
    pub(super) fn distance(self) -> Option<u32> {
        match self {
            Self::Ours(lzma2::Filter::Delta(distance)) => Some(distance.get().into()),
            _ => None,
        }
    }
}
