//! Compression of an archive on its way out, by several threads.
//!
//! The archive is cut into chunks, workers make a whole stream of each, and the thread that writes the archive writes
//! them in order. **Memory**: two chunks a thread and one more, their streams, and what the encoders take.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use durin_codec::StreamFormat;
use durin_format::{Error, Result};

/// One compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The format.
    pub format: StreamFormat,
    /// The level; `None` for that of the tool of the same name.
    pub level: Option<u32>,
    /// Threads; 0 for as many as processors. The bytes do not depend on it.
    pub threads: usize,
}

/// A chunk with a place for its stream.
type Work = (Room, Sender<Result<Room>>);

/// Memory of a chunk and of its stream, used again for a later chunk.
#[derive(Default)]
struct Room {
    chunk: Vec<u8>,
    stream: Vec<u8>,
}

impl Filter {
    fn level(&self) -> u32 {
        self.level.unwrap_or_else(|| self.format.default_level())
    }
}

/// Calls `fill` with a writer whose content comes to `target` through all `filters`, the first one first. A filter whose
/// threads are not told has `processors`.
pub(super) fn through<T>(
    filters: &[Filter],
    processors: usize,
    target: &mut dyn Write,
    fill: &mut dyn FnMut(&mut dyn Write) -> Result<T>,
) -> Result<T> {
    let Some((last, before)) = filters.split_last() else {
        return fill(target);
    };
    // Also finds out whether the level exists.
    last.format.encoder(last.level())?;
    let threads = match last.threads {
        0 => processors,
        threads => threads,
    };
    let (sender, receiver) = bounded::<Work>(threads);
    thread::scope(|scope| {
        for number in 0..threads {
            let receiver = receiver.clone();
            let spawned =
                thread::Builder::new().spawn_scoped(scope, move || compress(last, &receiver));
            if let Err(error) = spawned {
                // The others do it, if there are any.
                if number == 0 {
                    return Err(Error::io("cannot start a thread", error));
                }
                break;
            }
        }
        drop(receiver);
        let mut chunks = Chunks {
            target,
            room: Room::default(),
            spare: Vec::new(),
            chunk_len: last.format.chunk_len(last.level()),
            waiting: VecDeque::new(),
            waiting_max: 2 * threads,
            sender,
            has_sent: false,
        };
        let result = through(before, processors, &mut chunks, fill)?;
        chunks
            .finish()
            .map_err(|error| Error::io("cannot write the archive", error))?;
        Ok(result)
    })
}

fn compress(filter: &Filter, receiver: &Receiver<Work>) {
    let mut encoder = filter.format.encoder(filter.level());
    for (mut room, done) in receiver {
        let stream = match &mut encoder {
            Ok(encoder) => encoder.encode(&room.chunk, &mut room.stream).map(|()| room),
            Err(error) => Err(Error::new(error.kind(), error.to_string())),
        };
        // Nobody waits for it when the archive has failed.
        done.send(stream).ok();
    }
}

impl Room {
    /// All at once: what is not written to takes no memory, and buffers that grow leave others behind.
    fn reserve(&mut self, chunk_len: usize) {
        self.chunk.reserve_exact(chunk_len);
        // What cannot be compressed becomes a little longer.
        self.stream
            .reserve_exact(chunk_len + chunk_len / 64 + (64 << 10));
    }
}

/// Cuts what is written into chunks.
struct Chunks<'a> {
    target: &'a mut dyn Write,
    room: Room,
    spare: Vec<Room>,
    chunk_len: usize,
    waiting: VecDeque<Receiver<Result<Room>>>,
    waiting_max: usize,
    sender: Sender<Work>,
    has_sent: bool,
}

impl Chunks<'_> {
    fn send(&mut self) -> io::Result<()> {
        while self.waiting.len() >= self.waiting_max {
            self.write_first()?;
        }
        let (done, stream) = bounded(1);
        let next = self.spare.pop().unwrap_or_default();
        let room = std::mem::replace(&mut self.room, next);
        self.has_sent = true;
        self.sender
            .send((room, done))
            .map_err(|_| io::Error::other("no thread compresses"))?;
        self.waiting.push_back(stream);
        Ok(())
    }

    fn write_first(&mut self) -> io::Result<()> {
        let Some(first) = self.waiting.pop_front() else {
            return Ok(());
        };
        let mut room = first
            .recv()
            .map_err(|_| io::Error::other("a thread has ended early"))?
            .map_err(io::Error::other)?;
        self.target.write_all(&room.stream)?;
        room.chunk.clear();
        self.spare.push(room);
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        // Also nothing at all is a stream.
        if !self.room.chunk.is_empty() || !self.has_sent {
            self.send()?;
        }
        while !self.waiting.is_empty() {
            self.write_first()?;
        }
        Ok(())
    }
}

impl Write for Chunks<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let free = self.chunk_len - self.room.chunk.len();
        let (now, _) = data.split_at(data.len().min(free));
        if self.room.chunk.capacity() == 0 {
            self.room.reserve(self.chunk_len);
        }
        self.room.chunk.extend_from_slice(now);
        if self.room.chunk.len() == self.chunk_len {
            self.send()?;
        }
        Ok(now.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
