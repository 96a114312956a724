//! A terminal to run programs on, and enough of its behaviour to know what a user would see.

use std::fmt;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// How long a program may take.
const TIME_MAX: Duration = Duration::from_secs(120);

/// The master side of a pseudo terminal.
pub(crate) struct Terminal {
    master: OwnedFd,
    slave: Option<OwnedFd>,
    size: (u16, u16),
    /// What came, and the size that the terminal had then.
    output: Vec<((u16, u16), Vec<u8>)>,
}

/// What is on the screen, and what was.
pub(crate) struct Screen {
    /// Lines above and on the screen.
    rows: Vec<String>,
    /// The whole screen after each piece of output; a row that was broken by the width contains "WRAPPED".
    pub(crate) history: Vec<String>,
    pub(crate) raw: Vec<u8>,
    pub(crate) is_cursor_shown: bool,
}

impl Terminal {
    /// Opens a terminal with this many columns and rows.
    pub(crate) fn new(size: (u16, u16)) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap();
        let mut terminal = Self {
            master,
            slave: Some(slave),
            size,
            output: Vec::new(),
        };
        terminal.resize(size);
        terminal
    }

    pub(crate) fn resize(&mut self, size: (u16, u16)) {
        self.size = size;
        let winsize = Winsize {
            ws_col: size.0,
            ws_row: size.1,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&self.master, winsize).unwrap();
    }

    /// Starts a program with its messages on the terminal.
    pub(crate) fn start(&mut self, command: &mut Command) -> Child {
        let slave = self.slave.take().unwrap();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::from(slave))
            .process_group(0)
            .spawn()
            .unwrap()
    }

    /// Sends what Ctrl-C does.
    pub(crate) fn interrupt(&self, child: &Child) {
        let pid = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    }

    /// Takes what the program shows for a while.
    pub(crate) fn read_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while self.read_until(end) {}
    }

    /// Takes all the program shows until its end, and returns its exit code.
    pub(crate) fn finish(&mut self, child: &mut Child) -> Option<i32> {
        let end = Instant::now() + TIME_MAX;
        while self.read_until(end) {}
        if Instant::now() >= end {
            child.kill().unwrap();
        }
        child.wait().unwrap().code()
    }

    /// Takes the next piece; false at the end of the time or of the program.
    fn read_until(&mut self, end: Instant) -> bool {
        let left = end.saturating_duration_since(Instant::now());
        let Ok(timeout) = rustix::time::Timespec::try_from(left) else {
            return false;
        };
        let mut ready = [rustix::event::PollFd::new(
            &self.master,
            rustix::event::PollFlags::IN,
        )];
        if rustix::event::poll(&mut ready, Some(&timeout)).unwrap() == 0 {
            return false;
        }
        let mut buffer = vec![0; 1 << 16];
        let mut file = std::fs::File::from(self.master.try_clone().unwrap());
        // The kernel reports an error once nobody has the other side open any more.
        match file.read(&mut buffer) {
            Ok(0) | Err(_) => false,
            Ok(len) => {
                buffer.truncate(len);
                self.output.push((self.size, buffer));
                true
            }
        }
    }

    /// What a user has seen so far.
    pub(crate) fn screen(&self) -> Screen {
        let mut emulator = Emulator::default();
        let mut history = Vec::new();
        let mut raw = Vec::new();
        for (size, piece) in &self.output {
            emulator.reflow(*size);
            raw.extend_from_slice(piece);
            emulator.feed(piece);
            history.push(emulator.shown());
        }
        Screen {
            rows: emulator.rows.iter().map(Row::text).collect(),
            history,
            raw,
            is_cursor_shown: emulator.is_cursor_shown,
        }
    }
}

impl Screen {
    /// The lines that are not empty.
    pub(crate) fn lines(&self) -> Vec<String> {
        let lines = self.rows.iter().filter(|row| !row.is_empty());
        lines.cloned().collect()
    }
}

impl fmt::Display for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} pieces; in the end:", self.history.len())?;
        for row in &self.rows {
            writeln!(f, "|{row}")?;
        }
        for frame in self.history.iter().rev().take(3) {
            writeln!(f, "before:\n{frame}")?;
        }
        Ok(())
    }
}

/// A row of cells.
#[derive(Clone, Default)]
struct Row {
    cells: Vec<char>,
    /// Whether it is the rest of the row above.
    is_continued: bool,
}

impl Row {
    fn text(&self) -> String {
        let text: String = self.cells.iter().collect();
        let mark = if self.is_continued { "WRAPPED " } else { "" };
        format!("{mark}{}", text.trim_end())
    }
}

/// The few sequences that the display uses, on a screen that keeps all that scrolls off.
struct Emulator {
    columns: usize,
    height: usize,
    rows: Vec<Row>,
    row: usize,
    column: usize,
    is_cursor_shown: bool,
    /// Bytes of a sequence or a character that is not complete.
    pending: Vec<u8>,
}

impl Default for Emulator {
    fn default() -> Self {
        Self {
            columns: 80,
            height: 24,
            rows: vec![Row::default()],
            row: 0,
            column: 0,
            is_cursor_shown: true,
            pending: Vec::new(),
        }
    }
}

impl Emulator {
    /// Gives the screen another size. Rows that no longer fit are broken, as most terminals do.
    fn reflow(&mut self, (columns, height): (u16, u16)) {
        let (columns, height) = (usize::from(columns), usize::from(height));
        self.height = height;
        if columns == self.columns {
            return;
        }
        self.columns = columns;
        let mut rows: Vec<Row> = Vec::new();
        let mut cursor_row = 0;
        for (number, row) in self.rows.iter().enumerate() {
            if number == self.row {
                cursor_row = rows.len();
            }
            let mut cells = row.cells.clone();
            while cells.last() == Some(&' ') {
                cells.pop();
            }
            if row.is_continued {
                // Joined with the row that it continues, and broken again.
                let mut whole = rows.pop().map(|row| row.cells).unwrap_or_default();
                whole.extend(cells);
                cells = whole;
            }
            let mut pieces = cells.chunks(columns).map(<[char]>::to_vec);
            let first = pieces.next().unwrap_or_default();
            rows.push(Row {
                cells: first,
                is_continued: false,
            });
            rows.extend(pieces.map(|cells| Row {
                cells,
                is_continued: true,
            }));
        }
        self.row = cursor_row;
        self.rows = rows;
    }

    fn feed(&mut self, bytes: &[u8]) {
        let mut input = std::mem::take(&mut self.pending);
        input.extend_from_slice(bytes);
        let mut rest = &input[..];
        while let Some(used) = self.take(rest) {
            rest = &rest[used..];
        }
        self.pending = rest.to_vec();
    }

    /// Does what comes next and returns how many bytes that is; nothing if it is not complete.
    fn take(&mut self, input: &[u8]) -> Option<usize> {
        match input {
            [] | [0x1b] => None,
            [b'\r', ..] => {
                self.column = 0;
                Some(1)
            }
            [b'\n', ..] => {
                self.go_to_next_row(false);
                Some(1)
            }
            [0x1b, b'[', sequence @ ..] => {
                let end = sequence.iter().position(u8::is_ascii_alphabetic)?;
                let parameter = String::from_utf8_lossy(&sequence[..end]).into_owned();
                self.control(char::from(sequence[end]), &parameter);
                Some(2 + end + 1)
            }
            [0x1b, ..] => panic!("unknown sequence {input:?}"),
            _ => {
                let len = (1..=4.min(input.len()))
                    .find(|len| std::str::from_utf8(&input[..*len]).is_ok())?;
                let text = std::str::from_utf8(&input[..len]).unwrap();
                self.put(text.chars().next().unwrap());
                Some(len)
            }
        }
    }

    fn control(&mut self, command: char, parameter: &str) {
        match command {
            'A' => {
                let count: usize = parameter.parse().unwrap_or(1);
                // The cursor stops at the top of the screen.
                let top = self.rows.len().saturating_sub(self.height);
                self.row = self.row.saturating_sub(count).max(top);
            }
            'J' => {
                self.rows.truncate(self.row + 1);
                self.rows[self.row].cells.truncate(self.column);
            }
            'K' => self.rows[self.row].cells.truncate(self.column),
            'm' => {}
            'h' | 'l' if parameter == "?25" => self.is_cursor_shown = command == 'h',
            _ => panic!("unknown sequence {parameter}{command}"),
        }
    }

    fn put(&mut self, character: char) {
        assert!(!character.is_control(), "{character:?}");
        if self.column == self.columns {
            self.column = 0;
            self.go_to_next_row(true);
        }
        let cells = &mut self.rows[self.row].cells;
        cells.resize(cells.len().max(self.column + 1), ' ');
        cells[self.column] = character;
        self.column += 1;
    }

    fn go_to_next_row(&mut self, is_continued: bool) {
        self.row += 1;
        if self.row == self.rows.len() {
            self.rows.push(Row::default());
        }
        self.rows[self.row].is_continued = is_continued;
    }

    fn shown(&self) -> String {
        let top = self.rows.len().saturating_sub(self.height);
        let rows: Vec<_> = self.rows[top..].iter().map(Row::text).collect();
        rows.join("\n")
    }
}
