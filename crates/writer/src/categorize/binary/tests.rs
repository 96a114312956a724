//! Executables made here, well formed and hostile.

#![expect(
    clippy::big_endian_bytes,
    reason = "formats of files, not of images, may be big-endian"
)]

use super::*;

fn found(file: &[u8]) -> Option<Vec<(String, String, u64)>> {
    let describe = |category: Category, len| (category.name, category.subcategory, len);
    let claim = claim(&Probe::new(file, file.len() as u64, None))?;
    Some(match claim {
        Claim::Whole(category) => vec![describe(category, file.len() as u64)],
        Claim::Fragments(parts) => {
            let total: u64 = parts.iter().map(|part| part.len).sum();
            assert_eq!(total, file.len() as u64);
            let parts = parts.into_iter();
            parts
                .map(|part| describe(part.category, part.len))
                .collect()
        }
        Claim::Image(image) => panic!("{image:?}"),
    })
}

fn one(name: &str, subcategory: &str, len: u64) -> Option<Vec<(String, String, u64)>> {
    Some(vec![(name.to_owned(), subcategory.to_owned(), len)])
}

fn elf(class: u8, order: u8, kind: u16, machine: u16) -> Vec<u8> {
    let mut file = vec![0x7F, b'E', b'L', b'F', class, order, 1];
    file.resize(64, 0);
    let bytes = |number: u16| match order {
        1 => number.to_le_bytes(),
        _ => number.to_be_bytes(),
    };
    file[16..18].copy_from_slice(&bytes(kind));
    file[18..20].copy_from_slice(&bytes(machine));
    file
}

#[test]
fn elf_files() {
    let name = "binary/elf";
    assert_eq!(found(&elf(2, 1, 3, 62)), one(name, "00062-2-1-linked", 64));
    assert_eq!(found(&elf(1, 2, 2, 20)), one(name, "00020-1-2-linked", 64));
    assert_eq!(found(&elf(2, 1, 1, 183)), one(name, "00183-2-1-object", 64));
    for file in [
        elf(3, 1, 3, 62),
        elf(2, 3, 3, 62),
        elf(2, 1, 3, 62)[..51].to_vec(),
        elf(2, 1, 3, 62)[..20].to_vec(),
        b"\x7FELF".to_vec(),
    ] {
        assert_eq!(found(&file), None);
    }
}

fn pe(place: u32) -> Vec<u8> {
    let mut file = b"MZ".to_vec();
    file.resize(256, 0);
    file[0x3C..0x40].copy_from_slice(&place.to_le_bytes());
    file[128..134].copy_from_slice(b"PE\0\0\x64\x86");
    file[152..154].copy_from_slice(&0x20B_u16.to_le_bytes());
    file
}

#[test]
fn pe_files() {
    assert_eq!(found(&pe(128)), one("binary/pe", "34404-00523", 256));
    for place in [0, 129, 231, 256, u32::MAX] {
        assert_eq!(found(&pe(place)), None, "{place}");
    }
    assert_eq!(found(b"MZ and more text"), None);
}

fn macho(machine: u32, kind: u32, len: usize) -> Vec<u8> {
    let words = [0xFEED_FACF, machine, 0, kind].map(u32::to_le_bytes);
    let mut file = words.concat();
    file.resize(len, 1);
    file
}

fn fat(slices: &[(u32, u32)], len: usize) -> Vec<u8> {
    let count = u32::try_from(slices.len()).unwrap();
    let mut file = [0xCAFE_BABE, count].map(u32::to_be_bytes).concat();
    for (offset, len) in slices {
        file.extend([7, 3, *offset, *len, 12].map(u32::to_be_bytes).concat());
    }
    file.resize(len, 0);
    file
}

#[test]
fn macho_files() {
    let section = "binary/macho-section";
    let x86 = macho(0x0100_0007, 2, 100);
    assert_eq!(found(&x86), one(section, "0016777223-false-linked", 100));
    assert_eq!(
        found(&macho(7, 1, 100)),
        one(section, "0000000007-false-object", 100)
    );
    assert_eq!(found(&macho(7, 0, 100)), None);
    assert_eq!(found(&macho(7, 2, 100)[..12]), None);

    let mut file = fat(&[(300, 100), (100, 100)], 450);
    file[100..200].copy_from_slice(&x86);
    file[300..400].copy_from_slice(&macho(0x0100_000C, 2, 100));
    let lens: Vec<_> = found(&file)
        .expect("slices")
        .into_iter()
        .map(|(name, _, len)| (name, len))
        .collect();
    let (header, section) = ("binary/macho-header".to_owned(), section.to_owned());
    let expected = [
        (header.clone(), 100),
        (section.clone(), 100),
        (header.clone(), 100),
        (section, 100),
        (header, 50),
    ];
    assert_eq!(lens, expected);
}

#[test]
fn universal_files_that_are_none() {
    let place = |mut file: Vec<u8>, at: usize| {
        file[at..at + 100].copy_from_slice(&macho(7, 2, 100));
        file
    };
    for file in [
        // Java: the count is a version.
        fat(&[], 400),
        b"\xCA\xFE\xBA\xBE\0\0\0\x34 and a class".to_vec(),
        // Slices that overlap, leave the file, or are none.
        place(fat(&[(100, 100), (150, 100)], 400), 100),
        place(fat(&[(100, 400)], 400), 100),
        place(fat(&[(100, u32::MAX)], 400), 100),
        place(fat(&[(u32::MAX, 1)], 400), 100),
        fat(&[(100, 100)], 400),
        place(fat(&[(0, 400)], 400), 100),
        fat(&[(100, 100); 31], 4000),
    ] {
        assert_eq!(found(&file), None);
    }
}
