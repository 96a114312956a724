//! Section headers: what is in a section, how it is compressed, and its checksums.

macro_rules! coded_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $code:literal, $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$vdoc])* $variant,)*
            /// A number that this release does not know.
            Unknown(u16),
        }

        impl $name {
            /// The format's spelling of the name; `UNKNOWN` for a number without one.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Unknown(_) => "UNKNOWN",
                }
            }
        }

        impl From<u16> for $name {
            fn from(code: u16) -> Self {
                match code {
                    $($code => Self::$variant,)*
                    other => Self::Unknown(other),
                }
            }
        }

        impl From<$name> for u16 {
            fn from(value: $name) -> Self {
                match value {
                    $($name::$variant => $code,)*
                    $name::Unknown(other) => other,
                }
            }
        }
    };
}

coded_enum! {
    /// What a section holds.
    SectionType {
        /// File data.
        Block = 0, "BLOCK";
        /// The Frozen schema of the metadata.
        MetadataV2Schema = 7, "METADATA_V2_SCHEMA";
        /// The Frozen metadata.
        MetadataV2 = 8, "METADATA_V2";
        /// Types and offsets of all sections.
        SectionIndex = 9, "SECTION_INDEX";
        /// Who built the image, when and how.
        History = 10, "HISTORY";
    }
}

coded_enum! {
    /// How the payload of a section is compressed.
    CompressionType {
        /// Stored as it is.
        None = 0, "NONE";
        /// An `.xz` stream.
        Lzma = 1, "LZMA";
        /// One zstd frame.
        Zstd = 2, "ZSTD";
        /// A size and a raw LZ4 block.
        Lz4 = 3, "LZ4";
        /// As [`Self::Lz4`]; read, never written.
        Lz4hc = 4, "LZ4HC";
        /// A size and a Brotli stream.
        Brotli = 5, "BROTLI";
        /// A size, the sample layout and a FLAC stream.
        Flac = 6, "FLAC";
        /// A size, the pixel layout and a Rice bit stream.
        Ricepp = 7, "RICEPP";
    }
}
