//! Requests that no kernel would send: each gets an answer that a kernel could take.

#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(
    clippy::host_endian_bytes,
    reason = "the protocol is in the byte order of the machine"
)]

use std::path::Path;
use std::sync::Arc;

use durin_format::events::Quiet;
use durin_reader::{Image, ImageOptions};
use durin_source::OpenMode;
use durin_testkit::random::Random;
use durin_testkit::require;
use durin_testkit::vectors::Vectors;

use super::*;
use crate::FsOptions;
use crate::protocol::OUT_HEADER_LEN;

const REQUESTS: u64 = 20_000;
/// Of plain and packed tables, holes, many kinds of files, and a format before 2.3.
const IMAGES: [(&str, &str); 5] = [
    ("handmade", "base"),
    ("handmade", "dirs-reverse-packed"),
    ("handmade", "holes"),
    ("generated", "packed-all"),
    ("good", "compat-v0.4.1"),
];

fn adapter(image: &Path, opening: Opening, access: Access) -> Adapter {
    let source = durin_source::open(image, OpenMode::Mmap).unwrap();
    let image = Image::open(source, &ImageOptions::default()).unwrap();
    let fs = Fs::new(Arc::new(image), FsOptions::default(), Arc::new(Quiet));
    let rules = Rules {
        opening,
        access,
        default_permissions: true,
    };
    Adapter::new(fs, rules)
}

/// Numbers where the operations have their fields, and names; often cut off.
fn body(random: &mut Random) -> Vec<u8> {
    let mut body = Vec::new();
    for _ in 0..random.below(6) {
        match random.below(6) {
            0 => body.extend(random.next().to_ne_bytes()),
            1 => body.extend(random.below(1 << 20).to_ne_bytes()),
            2 => body.extend((1_u64 << random.below(64)).to_ne_bytes()),
            3 => body.extend(u64::MAX.to_ne_bytes()),
            4 => body.extend(b"user.dwarfs.inodeinfo\0"),
            _ => body.extend(random.below(5000).to_ne_bytes()),
        }
    }
    let len = usize::try_from(random.below(body.len() as u64 + 8)).unwrap();
    body.truncate(len);
    body
}

#[test]
fn any_request_gets_an_answer_that_is_one() {
    let vectors = require!(Vectors::find());
    let mut random = Random::new(8);
    for (folder, name) in IMAGES {
        let image = vectors.image(folder, name);
        for (opening, access) in [
            (Opening::Free, Access::All),
            (Opening::Guarded, Access::User { uid: 0, root: true }),
        ] {
            let mut adapter = adapter(&image, opening, access);
            let mut reply = Reply::default();
            for _ in 0..REQUESTS {
                ask(&mut adapter, &mut reply, &mut random);
            }
        }
    }
}

fn ask(adapter: &mut Adapter, reply: &mut Reply, random: &mut Random) {
    let body = body(random);
    let node = match random.below(4) {
        0 => random.next(),
        1 => 1 << random.below(64),
        _ => random.below(60),
    };
    let request = Request {
        opcode: u32::try_from(random.below(64)).unwrap(),
        unique: random.next(),
        node,
        uid: 0,
        pid: 1,
        body: &body,
    };
    let what = format!("{request:?}");
    let (then, result) = adapter.answer(&request, reply, &mut || ());
    if then == Then::Nothing {
        return;
    }
    let is_fine = result.is_ok();
    let len = reply.finish(request.unique, result);
    let pieces = reply.pieces();
    let answer: Vec<u8> = pieces.iter().flat_map(|piece| piece.to_vec()).collect();
    assert_eq!(answer.len(), len, "{what}");
    let (head, body) = answer.split_first_chunk::<OUT_HEADER_LEN>().unwrap();
    let (len, error) = (
        u32::from_ne_bytes(head[..4].try_into().unwrap()),
        &head[4..8],
    );
    let error = i32::from_ne_bytes(error.try_into().unwrap());
    assert_eq!(len as usize, answer.len(), "{what}");
    assert!(body.len() <= READ_MAX, "{what}: {len}");
    assert_eq!(error == 0, is_fine, "{what}: {error}");
    // The kernel takes no other numbers.
    assert!((-511..=0).contains(&error), "{what}: {error}");
    let unique = u64::from_ne_bytes(head[8..].try_into().unwrap());
    assert_eq!(unique, request.unique, "{what}");
}

#[test]
fn any_first_request_is_agreed_to_or_refused() {
    let vectors = require!(Vectors::find());
    let mut random = Random::new(9);
    let image = vectors.image("handmade", "base");
    let mut adapter = adapter(&image, Opening::Free, Access::All);
    let mut agreed = 0;
    for _ in 0..REQUESTS {
        let mut body = 7_u32.to_ne_bytes().to_vec();
        body.extend(u32::try_from(random.below(60)).unwrap().to_ne_bytes());
        let len = usize::try_from(random.below(72)).unwrap();
        body.extend(random.bytes(len));
        body[0] ^= u8::from(random.below(8) == 0);
        let request = Request {
            opcode: opcode::INIT,
            unique: 1,
            node: 0,
            uid: 0,
            pid: 0,
            body: &body,
        };
        let made = adapter.init(&request, &mut Reply::default(), || Err("none".to_owned()));
        agreed += u32::from(made.is_ok());
    }
    assert!(agreed > 0);
}
