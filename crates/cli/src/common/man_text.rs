//! Manual pages from texts in Markdown, of which our documents use little: headings, paragraphs, lists, tables (whose first
//! column names what the others explain), blocks of code, and code within a line.

/// Returns `text` as a page for `man(1)`; its first heading is the title, for which the page has its own line.
pub(crate) fn page(name: &str, section: u8, about: &str, text: &str) -> String {
    let mut roff = format!(
        ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n.TH {name} {section} \"\" \"durin {}\"\n.SH NAME\n{} \\- {}\n.SH DESCRIPTION\n",
        env!("CARGO_PKG_VERSION"),
        escape(name),
        escape(about)
    );
    let mut in_code = false;
    let mut table_row = 0;
    for line in text.lines().filter(|line| !line.starts_with("# ")) {
        if line.starts_with("```") {
            in_code = !in_code;
            roff.push_str(if in_code {
                ".PP\n.RS 4\n.nf\n"
            } else {
                ".fi\n.RE\n"
            });
            continue;
        }
        if in_code {
            roff.push_str(&format!("{}\n", guarded(&escape(line))));
            continue;
        }
        table_row = if line.starts_with('|') {
            table_row + 1
        } else {
            0
        };
        match line {
            "" => roff.push_str(".PP\n"),
            // A heading and a line below it.
            _ if matches!(table_row, 1 | 2) => {}
            _ if table_row > 2 => {
                let mut cells = line.trim_matches('|').splitn(2, '|').map(str::trim);
                let (tag, rest) = (
                    cells.next().unwrap_or_default(),
                    cells.next().unwrap_or_default(),
                );
                roff.push_str(&format!(
                    ".TP\n{}\n{}\n",
                    guarded(&inline(tag)),
                    guarded(&inline(&rest.replace(" | ", "; ")))
                ));
            }
            _ => roff.push_str(&text_line(line)),
        }
    }
    roff
}

fn text_line(line: &str) -> String {
    if let Some(title) = line.strip_prefix("## ") {
        format!(".SH {}\n", escape(&title.to_uppercase()))
    } else if let Some(title) = line.strip_prefix("### ") {
        format!(".SS {}\n", escape(title))
    } else if let Some(item) = line.strip_prefix("- ") {
        format!(".IP \\(bu 2\n{}\n", guarded(&inline(item)))
    } else {
        format!("{}\n", guarded(&inline(line)))
    }
}

/// Sets code in bold and emphasis in italics.
fn inline(text: &str) -> String {
    let mut roff = String::new();
    for (index, part) in text.split('`').enumerate() {
        if index % 2 == 1 {
            roff.push_str(&format!("\\fB{}\\fR", escape(part)));
            continue;
        }
        for (index, part) in part.split('*').enumerate() {
            let part = escape(part);
            match index % 2 {
                1 => roff.push_str(&format!("\\fI{part}\\fR")),
                _ => roff.push_str(&part),
            }
        }
    }
    roff
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('\'', "\\*(Aq")
}

/// Keeps a line from being taken for a request.
fn guarded(line: &str) -> String {
    match line.strip_prefix('.') {
        Some(rest) => format!("\\&.{rest}"),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_documents_use() {
        let text = "# Title\n\nA `-x` and *this*.\n.dot\n\n```\na -b \\\n```\n\n## Part\n\n- one\n\n### sub\n\n| H | I |\n| --- | --- |\n| `a` | does it |\n";
        let page = page("n-m", 7, "about it", text);
        let (_, body) = page.split_once(".SH NAME\n").expect("a name");
        assert_eq!(
            body,
            "n\\-m \\- about it\n.SH DESCRIPTION\n.PP\nA \\fB\\-x\\fR and \\fIthis\\fR.\n\\&.dot\n.PP\n.PP\n.RS 4\n.nf\n\
             a \\-b \\e\n.fi\n.RE\n.PP\n.SH PART\n.PP\n.IP \\(bu 2\none\n.PP\n.SS sub\n.PP\n.TP\n\\fBa\\fR\ndoes it\n"
        );
    }
}
