//! `section_details`: one line a section.

use durin_reader::{Info, SectionInfo};

use crate::common::{escape, ratio, size};

/// The sections in file order.
pub(super) fn sections(info: &Info) -> String {
    let index = if info.valid_section_index {
        "valid"
    } else {
        "none"
    };
    let mut text = format!("sections (index: {index}):\n");
    for (number, section) in info.sections.iter().enumerate() {
        let line = line(number, section);
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn line(number: usize, section: &SectionInfo) -> String {
    let stored = section.compressed_size;
    let mut line = format!(
        "  {number:>6} {:<19} at {:>12}, {:>10} {:<6}",
        section.section_type.name(),
        section.offset,
        size::display(stored),
        section
            .compression
            .map_or("?", |compression| compression.name()),
    );
    if let Some(whole) = section.size {
        line.push_str(&format!(
            " of {:>10} ({})",
            size::display(whole),
            ratio::display(stored, whole)
        ));
    }
    if let Some(category) = &section.category {
        line.push_str(&format!(" [{}]", escape::bytes(category.as_bytes())));
    }
    if let Some(metadata) = &section.metadata {
        line.push_str(&format!(
            " {}",
            escape::bytes(metadata.to_string().as_bytes())
        ));
    }
    if section.checksum_ok == Some(false) {
        line.push_str(" CHECKSUM WRONG");
    }
    line
}
