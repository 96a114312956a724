//! Opens, reads and closes files of a list, and tells how long each takes: what programs do that look at many small files.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use crate::say::say;
use anyhow::{Context, Result};

/// `open DIR LIST COUNT`: the names of the list end with NUL.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    let [dir, list, count] = super::positional(arguments, "client open DIR LIST COUNT")?;
    let names = std::fs::read(&list).context(list)?;
    let names = names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    let (mut files, mut bytes, mut sum) = (0_u64, 0_u64, 0_u64);
    let (mut content, mut micros) = (Vec::new(), Vec::new());
    for name in names.take(count.parse()?) {
        let path = Path::new(&dir).join(std::ffi::OsStr::from_bytes(name));
        content.clear();
        let start = Instant::now();
        File::open(&path)
            .and_then(|mut file| file.read_to_end(&mut content))
            .with_context(|| path.display().to_string())?;
        micros.push(start.elapsed().as_secs_f64() * 1e6);
        files += 1;
        bytes += content.len() as u64;
        // Enough to notice a wrong file, little enough not to be what is measured.
        let ends = [content.first(), content.last()].into_iter().flatten();
        sum = ends.fold(sum, |sum, byte| sum.rotate_left(5) ^ u64::from(*byte));
    }
    say!("{files} files, {bytes} bytes, {sum:x}");
    super::percentiles(micros)
}
