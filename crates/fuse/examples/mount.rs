//! The smallest driver: mounts an image and serves it until it is unmounted.
//!
//! `cargo run -p durin-fuse --example mount -- IMAGE MOUNTPOINT [OPTION,...]`
#![expect(clippy::print_stderr, reason = "an example")]

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use durin_format::{Error, Result, events::Quiet};
use durin_fuse::{FsOptions, MountOptions, options};
use durin_reader::{Image, ImageOptions};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [image, mountpoint, rest @ ..] => serve(image, mountpoint, rest),
        _ => Err(Error::invalid_input(
            "usage: mount IMAGE MOUNTPOINT [OPTION,...]",
        )),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mount: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(image: &str, mountpoint: &str, lists: &[String]) -> Result<()> {
    let mut mount = MountOptions::default();
    for option in lists.iter().flat_map(|list| options::split(list)) {
        mount.set(&option)?;
    }
    let source = durin_source::open(Path::new(image), durin_source::OpenMode::Mmap)
        .map_err(|error| Error::io(format!("cannot open {image}"), error))?;
    let image = Arc::new(Image::open(source, &ImageOptions::default())?);
    let fs = FsOptions::default();
    durin_fuse::mount(image, Path::new(mountpoint), &fs, &mount, Arc::new(Quiet))?.run()
}
