//! Checksums of file contents, chosen by name.
//!
//! The names are those of the reference programs: two of its own, and the crypto library's spellings.
//! Letter case does not matter, nor whether a `-`, `/` or `_` parts the pieces of a name.

use sha2::digest::DynDigest;
use xxhash_rust::xxh3::Xxh3Default;

use crate::{Error, Result};

/// One algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(Algorithm);

macro_rules! algorithms {
    ($($variant:ident, $name:literal, [$($alias:literal),*], $state:expr;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        enum Algorithm { $($variant,)* }

        const NAMES: &[&str] = &[$($name,)*];

        impl Algorithm {
            fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Takes a name in the form of [`plain`]; each algorithm also answers to its own name in that form.
            fn find(name: &str) -> Option<Self> {
                $(if name == plain($name) $(|| name == $alias)* { return Some(Self::$variant); })*
                None
            }

            fn state(self) -> State {
                match self { $(Self::$variant => $state,)* }
            }
        }
    };
}

algorithms! {
    Xxh3_64, "xxh3-64", [], State::Xxh3_64(Box::default());
    Xxh3_128, "xxh3-128", [], State::Xxh3_128(Box::default());
    Md5, "md5", ["ssl3md5"], dynamic::<md5::Md5>();
    Sha1, "sha1", ["ssl3sha1"], dynamic::<sha1::Sha1>();
    Sha224, "sha224", ["sha2224"], dynamic::<sha2::Sha224>();
    Sha256, "sha256", ["sha2256"], dynamic::<sha2::Sha256>();
    Sha384, "sha384", ["sha2384"], dynamic::<sha2::Sha384>();
    Sha512, "sha512", ["sha2512"], dynamic::<sha2::Sha512>();
    Sha512_224, "sha512-224", ["sha2512224"], dynamic::<sha2::Sha512_224>();
    Sha512_256, "sha512-256", ["sha2512256"], dynamic::<sha2::Sha512_256>();
    Sha3_224, "sha3-224", [], dynamic::<sha3::Sha3_224>();
    Sha3_256, "sha3-256", [], dynamic::<sha3::Sha3_256>();
    Sha3_384, "sha3-384", [], dynamic::<sha3::Sha3_384>();
    Sha3_512, "sha3-512", [], dynamic::<sha3::Sha3_512>();
    Blake2b512, "blake2b512", [], dynamic::<blake2::Blake2b512>();
    Blake2s256, "blake2s256", [], dynamic::<blake2::Blake2s256>();
    Blake3, "blake3", [], State::Blake3(Box::default());
    Ripemd160, "ripemd160", ["ripemd", "rmd160"], dynamic::<ripemd::Ripemd160>();
}

impl Digest {
    /// What whole files are compared by when the user does not choose.
    pub const XXH3_128: Self = Self(Algorithm::Xxh3_128);

    /// Finds an algorithm by its name.
    ///
    /// # Errors
    /// `InvalidInput` if there is none; the message lists all.
    pub fn parse(name: &str) -> Result<Self> {
        Algorithm::find(&plain(name)).map(Self).ok_or_else(|| {
            Error::invalid_input(format!(
                "unknown checksum algorithm \"{name}\": expected one of {}",
                NAMES.join(", ")
            ))
        })
    }

    /// Returns the name of every algorithm.
    #[must_use]
    pub fn names() -> &'static [&'static str] {
        NAMES
    }

    /// Returns the name of this algorithm.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Starts a computation.
    #[must_use]
    pub fn hasher(self) -> Hasher {
        Hasher(self.0.state())
    }
}

/// A digest being computed.
pub struct Hasher(State);

enum State {
    Xxh3_64(Box<Xxh3Default>),
    Xxh3_128(Box<Xxh3Default>),
    Blake3(Box<blake3::Hasher>),
    Dynamic(Box<dyn DynDigest + Send>),
}

impl Hasher {
    /// Adds `data`.
    pub fn update(&mut self, data: &[u8]) {
        match &mut self.0 {
            State::Xxh3_64(state) | State::Xxh3_128(state) => state.update(data),
            State::Blake3(state) => {
                state.update(data);
            }
            State::Dynamic(state) => state.update(data),
        }
    }

    /// Returns the digest; those that are numbers come most significant byte first, as `xxhsum` prints them.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        match self.0 {
            State::Xxh3_64(state) => most_significant_first(u128::from(state.digest()), 8),
            State::Xxh3_128(state) => most_significant_first(state.digest128(), 16),
            State::Blake3(state) => state.finalize().as_bytes().to_vec(),
            State::Dynamic(state) => state.finalize().into_vec(),
        }
    }
}

/// Returns `bytes` in lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('?');
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

fn dynamic<D: DynDigest + Default + Send + 'static>() -> State {
    State::Dynamic(Box::new(D::default()))
}

/// Lower case without separators, so that "SHA2-512/256", "sha512_256" and "sha512-256" meet.
fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '-' | '/' | '_'))
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

fn most_significant_first(value: u128, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = value.to_le_bytes().into_iter().take(len).collect();
    bytes.reverse();
    bytes
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn check(name: &str, expect: &str) {
        let mut hasher = Digest::parse(name).unwrap().hasher();
        hasher.update(b"a");
        hasher.update(b"bc");
        assert_eq!(hex(&hasher.finish()), expect, "{name}");
    }

    /// Published digests of "abc": the RFCs, FIPS 180-4 and 202, and the xxhsum and b3sum programs.
    #[test]
    fn known_answers() {
        check("xxh3-64", "78af5f94892f3950");
        check("xxh3-128", "06b05ab6733a618578af5f94892f3950");
        check("md5", "900150983cd24fb0d6963f7d28e17f72");
        check("SHA1", "a9993e364706816aba3e25717850c26c9cd0d89d");
        check(
            "SHA2-256",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        );
        check(
            "SHA512/256",
            "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23",
        );
        check(
            "sha3-256",
            "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532",
        );
        check(
            "BLAKE2s256",
            "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982",
        );
        check(
            "blake3",
            "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85",
        );
        check("rmd160", "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc");
    }

    #[test]
    fn every_name_is_found_and_kept() {
        for name in Digest::names() {
            let digest = Digest::parse(&name.to_uppercase()).unwrap();
            assert_eq!(digest.name(), *name);
            assert!(digest.hasher().finish().len() >= 8);
        }
        let message = Digest::parse("shake128").unwrap_err().to_string();
        assert!(
            message
                .starts_with("unknown checksum algorithm \"shake128\": expected one of xxh3-64,")
        );
    }
}
