//! Sound files made here: layouts, headers cut short, sizes that lie.

#![expect(
    clippy::big_endian_bytes,
    reason = "formats of files, not of images, may be big-endian"
)]

use super::*;

/// What a file is taken for: its layout in JSON and the lengths before, of and behind the samples.
fn found(file: &[u8]) -> Option<(String, Vec<u64>)> {
    match claim(&Probe::new(file, file.len() as u64, None))? {
        Claim::Fragments(parts) => {
            let total: u64 = parts.iter().map(|part| part.len).sum();
            assert_eq!(total, file.len() as u64);
            let waveform = parts
                .iter()
                .find(|part| part.category.name == "pcmaudio/waveform");
            let metadata = waveform.and_then(|part| part.category.metadata.clone());
            Some((metadata?, parts.iter().map(|part| part.len).collect()))
        }
        other => panic!("{other:?}"),
    }
}

fn chunk(name: &[u8], data: &[u8]) -> Vec<u8> {
    let mut bytes = [
        name,
        &u32::try_from(data.len()).unwrap().to_le_bytes(),
        data,
    ]
    .concat();
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    bytes
}

fn fmt(tag: u16, channels: u16, frame_len: u16, bits: u16) -> Vec<u8> {
    let rates = [44_100_u32.to_le_bytes(), 0_u32.to_le_bytes()].concat();
    [
        &tag.to_le_bytes()[..],
        &channels.to_le_bytes(),
        &rates,
        &frame_len.to_le_bytes(),
        &bits.to_le_bytes(),
    ]
    .concat()
}

fn extensible(channels: u16, frame_len: u16, bits: u16, valid: u16) -> Vec<u8> {
    let mut format = fmt(0xFFFE, channels, frame_len, bits);
    format.extend(22_u16.to_le_bytes());
    format.extend(valid.to_le_bytes());
    format.extend([3, 0, 0, 0, 1, 0]);
    format.extend([
        0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x80, 0x00, 0x00, 0xAA, 0x00, 0x38, 0x9B, 0x71,
    ]);
    format
}

fn wav(chunks: &[Vec<u8>]) -> Vec<u8> {
    [&b"RIFF\0\0\0\0WAVE"[..], &chunks.concat()].concat()
}

fn json(bits: u32, bytes: u32, endianness: &str, channels: u32, signedness: &str) -> String {
    format!(
        r#"{{"bits_per_sample":{bits},"bytes_per_sample":{bytes},"endianness":"{endianness}","number_of_channels":{channels},"padding":"lsb","signedness":"{signedness}"}}"#
    )
}

#[test]
fn wav_files() {
    let data = chunk(b"data", &[7; 120]);
    for (format, expected) in [
        (fmt(1, 2, 4, 16), json(16, 2, "little", 2, "signed")),
        (fmt(1, 1, 1, 8), json(8, 1, "little", 1, "unsigned")),
        (fmt(1, 2, 6, 20), json(20, 3, "little", 2, "signed")),
        (
            extensible(6, 12, 16, 16),
            json(16, 2, "little", 6, "signed"),
        ),
        (extensible(2, 8, 32, 24), json(24, 4, "little", 2, "signed")),
        (extensible(2, 6, 24, 0), json(24, 3, "little", 2, "signed")),
    ] {
        let format = chunk(b"fmt ", &format);
        let before = 12 + format.len() as u64 + 8;
        let file = wav(&[format.clone(), data.clone()]);
        assert_eq!(found(&file), Some((expected.clone(), vec![before, 120])));
        // Other chunks around, one of odd length.
        let file = wav(&[
            chunk(b"junk", b"odd"),
            format,
            data.clone(),
            chunk(b"LIST", b"more"),
        ]);
        assert_eq!(found(&file), Some((expected, vec![before + 12, 120, 12])));
    }
}

#[test]
fn wav_files_that_are_none_of_ours() {
    let data = chunk(b"data", &[7; 64]);
    let float = chunk(b"fmt ", &fmt(3, 2, 8, 32));
    let mut other_guid = extensible(2, 4, 16, 16);
    other_guid[30] ^= 1;
    for chunks in [
        vec![float, data.clone()],
        vec![chunk(b"fmt ", &other_guid), data.clone()],
        vec![chunk(b"fmt ", &fmt(1, 0, 4, 16)), data.clone()],
        vec![chunk(b"fmt ", &fmt(1, 9, 18, 16)), data.clone()],
        vec![chunk(b"fmt ", &fmt(1, 2, 5, 16)), data.clone()],
        vec![chunk(b"fmt ", &fmt(1, 2, 4, 17)), data.clone()],
        vec![chunk(b"fmt ", &fmt(1, 2, 4, 0)), data.clone()],
        vec![chunk(b"fmt ", &fmt(1, 1, 40, 16)), data.clone()],
        vec![chunk(b"fmt ", &fmt(1, 2, 4, 16)[..14]), data.clone()],
        // No samples, no description, less than a sample.
        vec![chunk(b"fmt ", &fmt(1, 2, 4, 16))],
        vec![data],
        vec![chunk(b"fmt ", &fmt(1, 2, 4, 16)), chunk(b"data", &[1, 2])],
    ] {
        assert_eq!(found(&wav(&chunks)), None, "{chunks:?}");
    }
}

#[test]
fn sizes_beyond_the_file_are_cut() {
    let mut data = chunk(b"data", &[7; 63]);
    data[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    let file = wav(&[chunk(b"fmt ", &fmt(1, 2, 4, 16)), data]);
    let (_, lens) = found(&file).expect("samples as far as they go");
    assert_eq!(lens, [44, 64]);
    // Chunks that lead out of the file, or to nowhere.
    for size in [u32::MAX, u32::MAX - 1, 1 << 31] {
        let mut junk = chunk(b"junk", b"");
        junk[4..8].copy_from_slice(&size.to_le_bytes());
        assert_eq!(found(&wav(&[junk, chunk(b"data", &[0; 64])])), None);
    }
}

#[test]
fn long_wav_files_say_their_size_elsewhere() {
    let ds64 = [0_u64, 60, 0].map(u64::to_le_bytes).concat();
    let mut data = chunk(b"data", &[7; 80]);
    data[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut file = wav(&[
        chunk(b"ds64", &ds64),
        chunk(b"fmt ", &fmt(1, 2, 4, 16)),
        data,
    ]);
    file[..4].copy_from_slice(b"RF64");
    let (_, lens) = found(&file).expect("samples");
    assert_eq!(lens, [76, 60, 20]);
}

fn be_chunk(name: &[u8], data: &[u8]) -> Vec<u8> {
    let mut bytes = chunk(name, data);
    bytes[4..8].reverse();
    bytes
}

fn aiff(kind: &[u8], comm: &[u8], samples: usize) -> Vec<u8> {
    let ssnd = [vec![0; 8], vec![7; samples]].concat();
    let form = [b"FORM\0\0\0\0", kind].concat();
    [form, be_chunk(b"COMM", comm), be_chunk(b"SSND", &ssnd)].concat()
}

fn comm(channels: u16, frames: u32, bits: u16, kind: &[u8]) -> Vec<u8> {
    let rate = [0; 10];
    [
        &channels.to_be_bytes()[..],
        &frames.to_be_bytes(),
        &bits.to_be_bytes(),
        &rate,
        kind,
    ]
    .concat()
}

#[test]
fn aiff_files() {
    let cases = [
        (
            &b"AIFF"[..],
            1_u16,
            16_u16,
            &b""[..],
            json(16, 2, "big", 1, "signed"),
        ),
        (b"AIFF", 2, 20, b"", json(20, 3, "big", 2, "signed")),
        (b"AIFF", 1, 8, b"", json(8, 1, "big", 1, "signed")),
        (b"AIFC", 2, 16, b"NONE", json(16, 2, "big", 2, "signed")),
        (b"AIFC", 2, 16, b"sowt", json(16, 2, "little", 2, "signed")),
    ];
    for (kind, channels, bits, compression, expected) in cases {
        let frame_len = usize::from(channels * bits.div_ceil(8));
        let file = aiff(kind, &comm(channels, 10, bits, compression), 12 * frame_len);
        let (metadata, lens) = found(&file).expect("samples");
        assert_eq!(metadata, expected);
        // As many as the description says.
        assert_eq!(
            (lens[1], lens[2]),
            (10 * frame_len as u64, 2 * frame_len as u64)
        );
    }
    for (kind, bits, compression) in [
        (&b"AIFC"[..], 16, &b"ulaw"[..]),
        (b"AIFC", 16, b""),
        (b"AIFF", 4, b""),
        (b"AIFF", 33, b""),
        (b"8SVX", 8, b""),
    ] {
        let file = aiff(kind, &comm(1, 100, bits, compression), 400);
        assert_eq!(found(&file), None, "{kind:?} {bits}");
    }
    // The samples come first, and skip some bytes.
    let ssnd = [vec![0, 0, 0, 4], vec![0; 8], vec![7; 40]].concat();
    let form = b"FORM\0\0\0\0AIFF".to_vec();
    let comm = be_chunk(b"COMM", &comm(2, u32::MAX, 16, b""));
    let file = [form, be_chunk(b"SSND", &ssnd), comm].concat();
    let (_, lens) = found(&file).expect("samples");
    assert_eq!(lens, [32, 40, 26]);
}

fn caf(desc: (&[u8], u32, u32, u32, u32), size: u64, samples: usize) -> Vec<u8> {
    let (id, flags, packet_len, channels, bits) = desc;
    let mut file = b"caff\0\x01\0\0desc".to_vec();
    file.extend(32_u64.to_be_bytes());
    file.extend([0; 8]);
    file.extend(id);
    for word in [flags, packet_len, 1, channels, bits] {
        file.extend(word.to_be_bytes());
    }
    file.extend(b"data");
    file.extend(size.to_be_bytes());
    file.extend([0; 4]);
    file.extend(vec![7; samples]);
    file
}

#[test]
fn caf_files() {
    let (metadata, lens) = found(&caf((b"lpcm", 2, 4, 2, 16), 84, 96)).expect("samples");
    assert_eq!(metadata, json(16, 2, "little", 2, "signed"));
    assert_eq!(lens, [68, 80, 16]);
    let (metadata, lens) = found(&caf((b"lpcm", 0, 3, 1, 24), u64::MAX, 94)).expect("samples");
    assert_eq!(metadata, json(24, 3, "big", 1, "signed"));
    assert_eq!(lens, [68, 93, 1]);
    for (desc, size) in [
        ((&b"lpcm"[..], 1, 8, 2, 32), 84),
        ((b"aac ", 0, 4, 2, 16), 84),
        ((b"lpcm", 0, 5, 2, 16), 84),
        ((b"lpcm", 0, 4, 0, 16), 84),
        ((b"lpcm", 0, 4, 2, 16), 3),
    ] {
        assert_eq!(found(&caf(desc, size, 96)), None, "{desc:?}");
    }
}

fn guid_chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let tail = [
        0xF3, 0xAC, 0xD3, 0x11, 0x8C, 0xD1, 0x00, 0xC0, 0x4F, 0x8E, 0xDB, 0x8A,
    ];
    let size = (data.len() as u64 + 24).to_le_bytes();
    let mut bytes = [&name[..], &tail, &size, data].concat();
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

#[test]
fn wave64_files() {
    let mut file = vec![
        0x72, 0x69, 0x66, 0x66, 0x2E, 0x91, 0xCF, 0x11, 0xA5, 0xD6, 0x28, 0xDB, 0x04, 0xC1, 0x00,
        0x00, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    file.extend(&guid_chunk(b"wave", b"")[..16]);
    let start = file.clone();
    file.extend(guid_chunk(b"fmt ", &fmt(1, 1, 3, 24)));
    file.extend(guid_chunk(b"data", &[7; 61]));
    let (metadata, lens) = found(&file).expect("samples");
    assert_eq!(metadata, json(24, 3, "little", 1, "signed"));
    assert_eq!(lens, [104, 60, 4]);
    // A chunk of less than its header does not go on for ever.
    let mut small = guid_chunk(b"junk", b"");
    small[16] = 0;
    assert_eq!(found(&[start, small].concat()), None);
}

#[test]
fn a_long_chain_of_chunks_ends() {
    let mut chunks = vec![chunk(b"junk", b""); 1 << 20];
    chunks.push(chunk(b"fmt ", &fmt(1, 1, 2, 16)));
    chunks.push(chunk(b"data", &[7; 64]));
    let file = wav(&chunks);
    // As in a build, only the start is at hand.
    let probe = Probe::new(&file[..1 << 17], file.len() as u64, None);
    assert_eq!(claim(&probe), None);
}

#[test]
fn any_bytes_are_taken() {
    let mut state = 5_u32;
    let files = [
        wav(&[
            chunk(b"fmt ", &extensible(2, 8, 32, 24)),
            chunk(b"data", &[7; 64]),
        ]),
        aiff(b"AIFC", &comm(2, 10, 16, b"sowt"), 40),
        caf((b"lpcm", 2, 4, 2, 16), 84, 96),
    ];
    for file in &files {
        for len in 0..file.len() {
            claim(&Probe::new(&file[..len], len as u64, None));
        }
        for _ in 0..20_000 {
            let mut damaged = file.clone();
            for _ in 0..3 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let place = state as usize / 7 % damaged.len();
                damaged[place] = state.to_le_bytes()[3];
            }
            found(&damaged);
        }
    }
}
