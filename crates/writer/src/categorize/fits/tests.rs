//! Images made here: cards, sizes, unused bits.

use super::*;

fn file(cards: &[&str], data: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    for card in cards {
        file.extend(format!("{card:<80}").bytes());
    }
    file.resize(file.len().next_multiple_of(2880), b' ');
    file.extend(data);
    file.resize(file.len().next_multiple_of(2880), 0);
    file
}

fn parts(file: &[u8], step: usize) -> Option<Vec<(u64, String)>> {
    let mut image = claim(&Probe::new(file, file.len() as u64, None))?;
    for (number, piece) in (0..).zip(file.chunks(step)) {
        image.look(number * step as u64, piece);
    }
    let parts = image.parts()?.into_iter();
    let described = parts.map(|part| {
        let text = part.category.metadata.unwrap_or(part.category.name);
        (part.len, text)
    });
    Some(described.collect())
}

const CARDS: [&str; 6] = [
    "SIMPLE  =                    T / conforms",
    "BITPIX  =                   16",
    "NAXIS   =                    2",
    "NAXIS1  =                   50",
    "NAXIS2  =                   40 / rows",
    "END",
];

fn json(components: u32, unused: u32) -> String {
    format!(
        r#"{{"bytes_per_sample":2,"component_count":{components},"endianness":"big","unused_lsb_count":{unused}}}"#
    )
}

#[test]
fn images() {
    let metadata = "fits/metadata".to_owned();
    for (pixel, unused) in [(0x0001, 0), (0x1234, 2), (0xFF00, 8), (0, 8), (0x8000, 8)] {
        let data = u16::to_be_bytes(pixel).repeat(2000);
        let expected = vec![
            (2880, metadata.clone()),
            (4000, json(1, unused)),
            (1760, metadata.clone()),
        ];
        for step in [1, 7, 2880, 1 << 20] {
            assert_eq!(parts(&file(&CARDS, &data), step), Some(expected.clone()));
        }
    }
}

#[test]
fn bayer_patterns_have_two_components() {
    let mut cards = CARDS.to_vec();
    cards.insert(5, "BAYERPAT= 'RGGB    '");
    let found = parts(&file(&cards, &[1; 4000]), 1000).expect("an image");
    assert_eq!(found[1], (4000, json(2, 0)));
    // An odd number of pixels has no pairs.
    cards[3] = "NAXIS1  =                    1";
    cards[4] = "NAXIS2  =                    3";
    assert_eq!(parts(&file(&cards, &[1; 4000]), 1000), None);
}

#[test]
fn other_files() {
    for (place, card) in [
        (0, "SIMPLE  =                    F"),
        (1, "BITPIX  =                  -32"),
        (1, "BITPIX  =                    8"),
        (2, "NAXIS   =                    3"),
        (3, "NAXIS1  =                    0"),
        (3, "NAXIS1  = 18446744073709551615"),
        (3, "NAXIS1  =            999999999"),
        (3, "NAXIS1  = 'text'"),
        (3, "COMMENT"),
        (4, "NAXIS2  =  9223372036854775807"),
        (5, "NO END"),
    ] {
        let mut cards = CARDS.to_vec();
        cards[place] = card;
        assert_eq!(parts(&file(&cards, &[1; 4000]), 1000), None, "{card}");
    }
    let mut odd = file(&CARDS, &[1; 4000]);
    odd.push(0);
    assert_eq!(parts(&odd, 1000), None);
    assert_eq!(parts(&file(&CARDS, b""), 1000), None);
    // Text that is no text.
    let mut cards = file(&CARDS, &[1; 4000]);
    cards[80..160].fill(0xFF);
    assert_eq!(parts(&cards, 1000), None);
}
