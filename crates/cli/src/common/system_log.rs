//! Messages for the system's log, as syslog(3) sends them: of a process that nobody watches.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use super::clock;
use super::logger::Level;

/// Where the system takes messages, whatever keeps them.
const SOCKET: &str = "/dev/log";

/// How long to wait for a log that has not taken earlier messages yet: readers of a mount wait meanwhile.
const PATIENCE: Duration = Duration::from_millis(20);

/// The facility of system daemons. Source: RFC 5424, 6.2.1.
const DAEMON: u8 = 3;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Sends a message of the program `name`, a line at a time. Where the system has no log, or one that does not keep up, it
/// is lost, for there is nowhere to say so.
pub(crate) fn send(name: &str, level: Level, message: &str) {
    let Ok(socket) = connect(Path::new(SOCKET)) else {
        return;
    };
    for line in message.lines() {
        drop(socket.send(packet(name, level, &time(), line).as_bytes()));
    }
}

fn connect(path: &Path) -> std::io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(path)?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// Source: RFC 3164, without the name of the host, as a log on the same machine takes it.
fn packet(name: &str, level: Level, time: &str, line: &str) -> String {
    let priority = DAEMON << 3 | severity(level);
    let pid = std::process::id();
    format!("<{priority}>{time} {name}[{pid}]: {line}")
}

fn severity(level: Level) -> u8 {
    match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info | Level::Verbose => 6,
        Level::Debug | Level::Trace => 7,
    }
}

fn time() -> String {
    let seconds = clock::since_1970().as_secs();
    let now = clock::local(i64::try_from(seconds).unwrap_or_default());
    let month = MONTHS
        .get(usize::try_from(now.month.saturating_sub(1)).unwrap_or_default())
        .unwrap_or(&"Jan");
    format!(
        "{month} {:2} {:02}:{:02}:{:02}",
        now.day, now.hour, now.minute, now.second
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_have_priority_time_and_name() {
        let pid = std::process::id();
        assert_eq!(
            packet("dwarfs", Level::Error, "Nov  9 12:00:00", "block 3: bad"),
            format!("<27>Nov  9 12:00:00 dwarfs[{pid}]: block 3: bad")
        );
        assert_eq!(time().len(), "Nov  9 12:00:00".len());
    }
}
