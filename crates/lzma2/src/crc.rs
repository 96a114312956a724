//! The two checksums of the `.xz` format.

const POLYNOMIAL32: u64 = 0xEDB8_8320;
const POLYNOMIAL64: u64 = 0xC96C_5795_D787_0F42;

/// How many bytes are taken at a time.
const STEP: usize = 8;

static TABLES64: [[u64; 256]; STEP] = tables(POLYNOMIAL64);
static TABLE32: [[u64; 256]; STEP] = tables(POLYNOMIAL32);

const fn tables(polynomial: u64) -> [[u64; 256]; STEP] {
    let mut tables = [[0; 256]; STEP];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            value = (value >> 1) ^ (polynomial * (value & 1));
            bit += 1;
        }
        tables[0][byte] = value;
        byte += 1;
    }
    let mut step = 1;
    while step < STEP {
        let mut byte = 0;
        while byte < 256 {
            let value = tables[step - 1][byte];
            tables[step][byte] = (value >> 8) ^ tables[0][(value & 0xFF) as usize];
            byte += 1;
        }
        step += 1;
    }
    tables
}

pub(crate) fn crc32(data: &[u8]) -> u32 {
    let byte = |crc: u64, byte: &u8| (crc >> 8) ^ TABLE32[0][usize::from(crc as u8 ^ byte)];
    !(data.iter().fold(0xFFFF_FFFF, byte) as u32)
}

pub(crate) fn crc64(data: &[u8]) -> u64 {
    let (words, rest) = data.as_chunks::<STEP>();
    let mut crc = u64::MAX;
    for word in words {
        let bytes = (crc ^ u64::from_le_bytes(*word)).to_le_bytes();
        crc = 0;
        for (byte, table) in bytes.iter().zip(TABLES64.iter().rev()) {
            crc ^= table[usize::from(*byte)];
        }
    }
    for byte in rest {
        crc = (crc >> 8) ^ TABLES64[0][usize::from(crc as u8 ^ byte)];
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_values_of_the_polynomials() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc64(b"123456789"), 0x995D_C9BB_DF19_39FA);
        assert_eq!(crc64(b""), 0);
    }
}
