//! mtree: no content, but a line of text for each path that says what must be there.
//!
//! Source: mtree(5) of FreeBSD and libarchive.

use durin_format::Result;
use durin_format::digest::{self, Digest, Hasher};
use durin_reader::FileKind;

use super::member::{Body, Format, Links, Member};
use super::output::Output;
use super::prepare::{Prepare, Prepared, digest_all};

/// A specification in the making.
pub(super) struct Mtree {
    digests: Vec<Digest>,
    /// Those of a file of several pieces.
    hashers: Vec<Hasher>,
    /// Those of the file written last, for its other names.
    found: Vec<Vec<u8>>,
    has_begun: bool,
}

impl Mtree {
    pub(super) fn new(digests: Vec<Digest>) -> Self {
        Self {
            digests,
            hashers: Vec::new(),
            found: Vec::new(),
            has_begun: false,
        }
    }

    fn line(&self, member: &Member<'_>) -> Vec<u8> {
        let attr = member.attr;
        let mut line = b".".to_vec();
        if !member.path.is_empty() {
            line.push(b'/');
            line.extend(quoted(member.path));
        }
        let kind = match attr.kind {
            FileKind::Directory => "dir",
            FileKind::Symlink => "link",
            FileKind::Regular => "file",
            FileKind::CharDevice => "char",
            FileKind::BlockDevice => "block",
            FileKind::Fifo => "fifo",
            FileKind::Socket => "socket",
        };
        let mut set = |key: &str, value: &[u8]| {
            line.push(b' ');
            line.extend_from_slice(key.as_bytes());
            line.push(b'=');
            line.extend_from_slice(value);
        };
        set("type", kind.as_bytes());
        set("mode", format!("{:04o}", attr.mode & 0o7777).as_bytes());
        set("uid", attr.uid.to_string().as_bytes());
        set("gid", attr.gid.to_string().as_bytes());
        let time = format!("{}.{:09}", attr.mtime.sec, attr.mtime.nsec);
        set("time", time.as_bytes());
        match member.body {
            Body::Target(target) => set("link", &quoted(target)),
            Body::Data(_) | Body::LinkTo(_) | Body::Later => {
                set("nlink", member.nlink.to_string().as_bytes());
                set("size", attr.size.to_string().as_bytes());
                for (digest, value) in self.digests.iter().zip(&self.found) {
                    set(&keyword(*digest), digest::hex(value).as_bytes());
                }
            }
            Body::Empty if matches!(attr.kind, FileKind::CharDevice | FileKind::BlockDevice) => {
                let (major, minor) = (rustix::fs::major(attr.rdev), rustix::fs::minor(attr.rdev));
                set("device", format!("native,{major},{minor}").as_bytes());
            }
            Body::Empty => {}
        }
        line.push(b'\n');
        line
    }
}

/// The keyword of a digest. One has another name here, and libarchive reads no other.
fn keyword(digest: Digest) -> String {
    match digest.name() {
        "ripemd160" => "rmd160digest".to_owned(),
        name => format!("{name}digest"),
    }
}

impl Format for Mtree {
    fn links(&self) -> Links {
        Links::Named
    }

    fn holds(&self, _kind: FileKind) -> bool {
        true
    }

    fn has_root(&self) -> bool {
        true
    }

    fn prepare(&self) -> Prepare {
        Prepare::Digests(self.digests.clone())
    }

    fn begin(&mut self, member: &Member<'_>, out: &mut Output<'_>) -> Result<()> {
        if !std::mem::replace(&mut self.has_begun, true) {
            out.write(b"#mtree\n")?;
        }
        if let Body::Data(layout) = member.body {
            self.hashers.clear();
            self.found.clear();
            if layout.size == 0 {
                self.found = digest_all(&self.digests, b"");
            }
        }
        Ok(())
    }

    fn data(&mut self, piece: Prepared, _out: &mut Output<'_>) -> Result<()> {
        if let Some(digests) = piece.digests {
            self.found = digests;
            return Ok(());
        }
        if piece.position.is_first {
            self.hashers = self.digests.iter().map(|digest| digest.hasher()).collect();
        }
        for hasher in &mut self.hashers {
            hasher.update(&piece.data);
        }
        if piece.position.is_last {
            self.found = self.hashers.drain(..).map(Hasher::finish).collect();
        }
        Ok(())
    }

    fn end(&mut self, member: &Member<'_>, out: &mut Output<'_>) -> Result<()> {
        out.write(&self.line(member))
    }

    fn finish(&mut self, _out: &mut Output<'_>) -> Result<()> {
        Ok(())
    }
}

/// A name with everything in octal that means something in a line, or is no character.
fn quoted(name: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(name.len());
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b"#*=?[\\".contains(byte);
    for piece in name.chunk_by(|one, other| is_plain(one) && is_plain(other)) {
        match piece {
            [byte] if !is_plain(byte) => {
                quoted.extend_from_slice(format!("\\{byte:03o}").as_bytes());
            }
            plain => quoted.extend_from_slice(plain),
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted() {
        assert_eq!(quoted(b"a b#c\\\xff~"), b"a\\040b\\043c\\134\\377~");
    }
}
