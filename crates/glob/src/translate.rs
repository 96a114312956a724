//! From the pattern's text to the text of a regular expression, in one pass and without recursion.

/// One character except `/`, or one byte of a name that is not UTF-8.
const ANY_CHAR: &str = r"(?:[^/]|(?-u:[\x80-\xFF]))";
/// Any run of bytes inside a component.
const RUN: &str = r"(?-u:[^/]*)";
/// The same, where the run is a whole component.
const COMPONENT: &str = r"(?-u:[^/]+)";
/// Any bytes at all.
const ANYTHING: &str = r"(?s-u:.*)";
/// Components that may be missing altogether.
const COMPONENTS: &str = r"(?:(?s-u:.*)/)?";

/// Returns the expression, anchored at both ends.
pub(crate) fn to_regex(pattern: &str) -> Result<String, &'static str> {
    let mut translation = Translation {
        chars: pattern.chars().collect(),
        position: 0,
        out: String::from(r"\A"),
        at_start: true,
        open: Vec::new(),
    };
    while let Some(c) = translation.next() {
        translation.token(c)?;
    }
    if !translation.open.is_empty() {
        return Err("'{' without '}'");
    }
    translation.out.push_str(r"\z");
    Ok(translation.out)
}

struct Translation {
    chars: Vec<char>,
    position: usize,
    out: String,
    /// Whether the next character begins a component.
    at_start: bool,
    /// For each open brace, whether it began a component.
    open: Vec<bool>,
}

impl Translation {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.position).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.position += 1;
        Some(c)
    }

    fn token(&mut self, c: char) -> Result<(), &'static str> {
        let starts = self.at_start;
        self.at_start = false;
        match c {
            '?' => self.out.push_str(ANY_CHAR),
            '*' => self.stars(starts),
            '[' => self.class()?,
            ']' => return Err("']' without '['"),
            '{' => {
                self.open.push(starts);
                self.at_start = starts;
                self.out.push_str("(?:");
            }
            '}' => {
                self.open.pop().ok_or("'}' without '{'")?;
                self.out.push(')');
            }
            ',' if !self.open.is_empty() => {
                self.at_start = self.open.last() == Some(&true);
                self.out.push('|');
            }
            '\\' => {
                let literal = self.next().ok_or("'\\' at the end")?;
                push_literal(&mut self.out, literal);
            }
            literal => {
                self.at_start = literal == '/';
                push_literal(&mut self.out, literal);
            }
        }
        Ok(())
    }

    /// The first star of a run has been taken.
    fn stars(&mut self, starts: bool) {
        let mut count = 1;
        while self.peek() == Some('*') {
            self.position += 1;
            count += 1;
        }
        let token = if count == 1 {
            if starts && self.component_ends() {
                COMPONENT
            } else {
                RUN
            }
        } else if starts && self.peek() == Some('/') {
            self.position += 1;
            self.at_start = true;
            COMPONENTS
        } else {
            ANYTHING
        };
        self.out.push_str(token);
    }

    /// Whether nothing more of this component follows, looking past the ends of open alternatives.
    fn component_ends(&self) -> bool {
        let mut rest = self.chars.get(self.position..).unwrap_or_default();
        let mut depth = self.open.len();
        loop {
            match rest.first() {
                None | Some('/') => return true,
                Some('}') if depth > 0 => rest = &rest[1..],
                Some(',') if depth > 0 => rest = after_group(rest),
                Some(_) => return false,
            }
            depth -= 1;
        }
    }

    /// A class, whose `[` has been taken.
    fn class(&mut self) -> Result<(), &'static str> {
        const OPEN: &str = "'[' without ']'";
        let negated = self.peek() == Some('!');
        self.position += usize::from(negated);
        let mut items = String::new();
        let mut first = true;
        loop {
            let c = self.next().ok_or(OPEN)?;
            if c == ']' && !first {
                break;
            }
            first = false;
            let low = self.class_char(c).ok_or(OPEN)?;
            let mut high = low;
            let range_follows = self.peek() == Some('-')
                && !matches!(self.chars.get(self.position + 1), None | Some(']'));
            if range_follows {
                self.position += 1;
                let c = self.next().ok_or(OPEN)?;
                high = self.class_char(c).ok_or(OPEN)?;
            }
            if low == '/' || high == '/' {
                return Err("'/' between '[' and ']'");
            }
            if low > high {
                return Err("range with its ends in the wrong order");
            }
            push_literal(&mut items, low);
            items.push('-');
            push_literal(&mut items, high);
        }
        // A range may contain the separator without naming it, so it is taken out of every class.
        if negated {
            self.out.push_str(r"(?:[^/");
            self.out.push_str(&items);
            self.out.push_str(r"]|(?-u:[\x80-\xFF]))");
        } else {
            self.out.push_str("[[");
            self.out.push_str(&items);
            self.out.push_str("]&&[^/]]");
        }
        Ok(())
    }

    fn class_char(&mut self, c: char) -> Option<char> {
        if c == '\\' { self.next() } else { Some(c) }
    }
}

/// What follows the brace that closes the group in which `rest` lies.
fn after_group(rest: &[char]) -> &[char] {
    let mut depth = 1_usize;
    let mut position = 0;
    while let Some(c) = rest.get(position) {
        position += 1;
        match c {
            '\\' => position += 1,
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    rest.get(position..).unwrap_or_default()
}

/// Writes the character so that it has no meaning of its own.
fn push_literal(out: &mut String, c: char) {
    if c.is_ascii_alphanumeric() {
        out.push(c);
    } else {
        out.push_str(&format!("\\x{{{:X}}}", u32::from(c)));
    }
}
