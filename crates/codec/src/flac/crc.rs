//! The checksums of FLAC frames.

/// Polynomial x^8 + x^2 + x + 1.
const CRC8: [u8; 256] = crc8_table();
/// Polynomial x^16 + x^15 + x^2 + 1.
const CRC16: [u16; 256] = crc16_table();

/// The checksum of a frame's header.
pub(super) fn crc8(bytes: &[u8]) -> u8 {
    bytes
        .iter()
        .fold(0, |crc, byte| CRC8[usize::from(crc ^ byte)])
}

/// The checksum of a frame.
pub(super) fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        let [_, high] = crc.to_le_bytes();
        (crc << 8) ^ CRC16[usize::from(high ^ byte)]
    })
}

const fn crc8_table() -> [u8; 256] {
    let mut table = [0; 256];
    let mut index: u8 = 0;
    loop {
        let mut crc = index;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc << 1) ^ (if crc & 0x80 == 0 { 0 } else { 0x07 });
            bit += 1;
        }
        table[index as usize] = crc;
        if index == u8::MAX {
            return table;
        }
        index += 1;
    }
}

const fn crc16_table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut index: u8 = 0;
    loop {
        let mut crc = (index as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc << 1) ^ (if crc & 0x8000 == 0 { 0 } else { 0x8005 });
            bit += 1;
        }
        table[index as usize] = crc;
        if index == u8::MAX {
            return table;
        }
        index += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source: the check values of CRC-8/SMBUS and CRC-16/UMTS.
    #[test]
    fn known_sums() {
        assert_eq!(crc8(b"123456789"), 0xF4);
        assert_eq!(crc16(b"123456789"), 0xFEE8);
    }
}
