//! Writing the tree of an image as an archive.
//!
//! Directories come first, parents before children, then symlinks and nodes, then regular files in the order of their data,
//! so that each block is decoded once; further names of a file stand next to it. The order follows from the image alone, and
//! so do all bytes: the number of threads and the clock have no part in it.
//!
//! [`contents`] reads ahead with several threads, [`Format`](member::Format) is what each format implements; formats do
//! not know images, and nothing else knows formats.

mod contents;
mod cpio;
mod filter;
mod layout;
mod member;
mod mtree;
mod output;
mod prepare;
mod raw;
mod tar;
mod zip;

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use durin_format::digest::Digest;
use durin_format::events::Events;
use durin_format::{Error, Result};
use durin_reader::{FileKind, Image};

use crate::files::order::Files;
use crate::job::{Run, add};
use crate::options::{ExtractOptions, Report, Stats};
use crate::plan::{Entry, Paths, Plan, TOP};

use contents::{Head, Next, Part, Wanted};
use member::{Body, Format, Links, Losses, Member};
use output::Output;

pub use filter::Filter;

/// A format of archives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveFormat {
    /// The tar of Unix version 7: names of 99 bytes, no devices.
    V7,
    /// The tar of POSIX 1988.
    Ustar,
    /// GNU tar's own extensions of it.
    Gnutar,
    /// The tar of POSIX 2001, which has room for everything.
    Pax,
    /// As [`Self::Pax`], with its extensions only where ustar cannot hold something.
    PaxRestricted,
    /// The portable cpio of POSIX, with numbers in octal.
    CpioOdc,
    /// The cpio of System V release 4, as the Linux kernel reads it.
    CpioNewc,
    /// zip with 64-bit sizes and the fields of Info-ZIP.
    Zip,
    /// A text that tells attributes and digests.
    Mtree,
    /// The content of one file.
    Raw,
}

/// What an archive is to be.
#[derive(Clone, Debug)]
pub struct ArchiveOptions {
    /// Its format.
    pub format: ArchiveFormat,
    /// Compressions, the first one first.
    pub filters: Vec<Filter>,
    /// Level of the compression inside of zip, 0 to 9; `None` stores.
    pub zip_level: Option<u32>,
    /// Digests in mtree.
    pub digests: Vec<Digest>,
}

impl ArchiveOptions {
    /// A format with the settings that nobody has to ask for.
    #[must_use]
    pub fn new(format: ArchiveFormat) -> Self {
        Self {
            format,
            filters: Vec::new(),
            zip_level: Some(6),
            digests: Digest::parse("sha256").into_iter().collect(),
        }
    }
}

/// Writes `image` to `target` as an archive.
///
/// [`ExtractOptions::owner`] has no part in it: archives hold owners. `cancel` ends it soon after it becomes true.
///
/// # Errors
/// `Io` if the archive cannot be written, `Cancelled`; without [`continue_on_error`](ExtractOptions::continue_on_error)
/// also `Corrupt`, `Unsupported` and others for the first thing that cannot be read or that the format cannot hold.
/// What has been written then is no archive.
pub fn extract_to_archive(
    image: &Image,
    archive: &ArchiveOptions,
    target: &mut (dyn Write + '_),
    options: &ExtractOptions,
    stats: &Stats,
    events: &dyn Events,
    cancel: &AtomicBool,
) -> Result<Report> {
    let mut plan = Plan::make(image, options, Paths::Whole)?;
    let refused = std::mem::take(&mut plan.refused);
    let run = Run::new(image, options, stats, &plan, events, cancel);
    run.begin(refused)?;
    let mut format = make(archive);
    filter::through(
        &archive.filters,
        options.processors(),
        target,
        &mut |target| {
            let mut archive = Archive {
                run: &run,
                format: format.as_mut(),
                out: Output::new(target),
            };
            archive.directories()?;
            archive.others()?;
            archive.files()?;
            archive.format.finish(&mut archive.out)?;
            archive.out.flush()
        },
    )?;
    tell_losses(&run, format.losses());
    Ok(run.report())
}

fn make(archive: &ArchiveOptions) -> Box<dyn Format> {
    use tar::{Dialect, Tar};
    match archive.format {
        ArchiveFormat::V7 => Box::new(Tar::new(Dialect::V7)),
        ArchiveFormat::Ustar => Box::new(Tar::new(Dialect::Ustar)),
        ArchiveFormat::Gnutar => Box::new(Tar::new(Dialect::Gnu)),
        ArchiveFormat::Pax => Box::new(Tar::new(Dialect::Pax)),
        ArchiveFormat::PaxRestricted => Box::new(Tar::new(Dialect::PaxRestricted)),
        ArchiveFormat::CpioOdc => Box::new(cpio::Cpio::new(cpio::Dialect::Odc)),
        ArchiveFormat::CpioNewc => Box::new(cpio::Cpio::new(cpio::Dialect::Newc)),
        ArchiveFormat::Zip => Box::new(zip::Zip::new(archive.zip_level)),
        ArchiveFormat::Mtree => Box::new(mtree::Mtree::new(archive.digests.clone())),
        ArchiveFormat::Raw => Box::new(raw::Raw::default()),
    }
}

/// An archive in the making.
struct Archive<'a, 'o> {
    run: &'a Run<'a>,
    format: &'a mut dyn Format,
    out: Output<'o>,
}

impl Archive<'_, '_> {
    fn directories(&mut self) -> Result<()> {
        for (place, dir) in (TOP..).zip(&self.run.plan.dirs) {
            if !dir.is_wanted || (place == TOP && !self.format.has_root()) {
                continue;
            }
            self.run.check_cancel()?;
            let plan = self.run.plan;
            let path = plan.dir_path(place);
            let stored = self.run.image.attr(dir.entry).and_then(|attr| {
                self.store(&Member {
                    path: &path,
                    attr: &attr,
                    body: Body::Empty,
                    nlink: 1,
                })
            });
            match stored {
                Ok(()) => add(&self.run.counts.directories),
                Err(error) => self.skip(error, &plan.shown_dir(place))?,
            }
        }
        Ok(())
    }

    /// Stores symlinks and nodes.
    fn others(&mut self) -> Result<()> {
        for entry in &self.run.plan.entries {
            if entry.kind == FileKind::Regular {
                continue;
            }
            self.run.check_cancel()?;
            if !self.format.holds(entry.kind) {
                let path = self.run.plan.shown(entry);
                let what = crate::make::kind_name(entry.kind);
                self.run
                    .note(&format!("{path}: left out, the format has no {what}"));
                continue;
            }
            let stored = self.other(entry);
            match stored {
                Ok(()) if entry.kind == FileKind::Symlink => add(&self.run.counts.symlinks),
                Ok(()) => add(&self.run.counts.nodes),
                Err(error) => self.skip(error, &self.run.plan.shown(entry))?,
            }
        }
        Ok(())
    }

    fn other(&mut self, entry: &Entry) -> Result<()> {
        let attr = self.run.image.attr(entry.entry)?;
        let target = match entry.kind {
            FileKind::Symlink => Some(self.run.image.read_link(entry.entry.inode)?),
            _ => None,
        };
        self.store(&Member {
            path: &self.run.plan.path(entry),
            attr: &attr,
            body: target.as_deref().map_or(Body::Empty, Body::Target),
            nlink: 1,
        })
    }

    /// Stores a member without content.
    fn store(&mut self, member: &Member<'_>) -> Result<()> {
        self.format.begin(member, &mut self.out)?;
        self.format.end(member, &mut self.out)
    }

    /// Leaves something out, unless it is the archive that cannot be written.
    fn skip(&self, error: Error, path: &str) -> Result<()> {
        if self.out.has_failed() {
            return Err(error);
        }
        self.run.skip(error.context(path))
    }

    fn files(&mut self) -> Result<()> {
        let run = self.run;
        let wants = |dir: u32| run.plan.dirs.get(dir as usize).is_some();
        let files = Files::in_data_order(run, wants)?;
        files.count_total(run);
        let wanted = Wanted {
            links: self.format.links(),
            keeps_holes: self.format.keeps_holes(),
            prepare: self.format.prepare(),
        };
        let mut open = Open::Nothing;
        contents::read(run, &files, &wanted, |part| {
            self.take(&files, &wanted, &mut open, part)
        })?;
        self.close(&files, &mut open)
    }

    fn take(
        &mut self,
        files: &Files,
        wanted: &Wanted,
        open: &mut Open,
        part: Part,
    ) -> Result<Next> {
        match part {
            Part::Begin(head) => {
                self.close(files, open)?;
                *open = Open::Announced(head);
            }
            Part::Missing(group, error) => {
                self.close(files, open)?;
                self.give_up(files, group, error)?;
            }
            Part::Data(piece) => {
                let len = piece.len;
                self.begin(files, open)?;
                let Open::Begun(_) = open else {
                    return Ok(Next::AnotherFile);
                };
                self.format.data(piece, &mut self.out)?;
                let done = &self.run.stats.bytes_done;
                done.fetch_add(len, Ordering::Relaxed);
            }
            Part::Bad(error, piece) => match open {
                Open::Announced(head) => {
                    let group = head.group;
                    *open = Open::Nothing;
                    self.give_up(files, group, error)?;
                    return Ok(Next::AnotherFile);
                }
                Open::Begun(head) => {
                    if let Some(entry) = files.entries(head.group).get(head.name) {
                        let path = self.run.plan.shown(entry);
                        let context =
                            format!("{path}: zeros stand in the archive for what cannot be read");
                        self.run.skip(error.context(context))?;
                    }
                    let zeros = wanted.prepare.run(vec![0; piece.len], piece.position)?;
                    self.format.data(zeros, &mut self.out)?;
                }
                Open::Nothing => return Ok(Next::AnotherFile),
            },
            // Workers have replaced all of them.
            Part::Wanted(_) => {}
        }
        Ok(Next::Any)
    }

    /// Begins the file that is announced.
    fn begin(&mut self, files: &Files, open: &mut Open) -> Result<()> {
        let mut head = match std::mem::take(open) {
            Open::Announced(head) => head,
            other => {
                *open = other;
                return Ok(());
            }
        };
        let entries = files.entries(head.group);
        let body = Body::Data(&head.layout);
        if self.format.links() == Links::LastHasContent {
            if let Err(error) = self.format.accepts(&body) {
                return self.give_up(files, head.group, error);
            }
            for other in entries.iter().skip(1) {
                self.link(other, &head, entries.len(), Body::Later)?;
            }
        }
        // Where the other names refer to one of them, that can be any whose path fits the format.
        let count_max = match self.format.links() {
            Links::Named => usize::MAX,
            Links::LastHasContent | Links::AllHaveContent => 1,
        };
        let mut errors = Vec::new();
        for (name, entry) in entries.iter().enumerate().skip(head.name).take(count_max) {
            let begun = self.format.begin(
                &Member {
                    path: &self.run.plan.path(entry),
                    attr: &head.attr,
                    body: Body::Data(&head.layout),
                    nlink: count(entries.len()),
                },
                &mut self.out,
            );
            match begun {
                Ok(()) => {
                    for (entry, error) in entries.iter().zip(errors) {
                        self.skip(error, &self.run.plan.shown(entry))?;
                    }
                    head.name = name;
                    *open = Open::Begun(head);
                    return Ok(());
                }
                Err(error) if self.out.has_failed() => return Err(error),
                Err(error) => errors.push(error),
            }
        }
        match errors.into_iter().next() {
            Some(error) => self.give_up(files, head.group, error),
            None => Ok(()),
        }
    }

    /// Ends the file that is open, if there is one, and adds its other names.
    fn close(&mut self, files: &Files, open: &mut Open) -> Result<()> {
        // One without content has not begun.
        self.begin(files, open)?;
        let Open::Begun(head) = std::mem::take(open) else {
            return Ok(());
        };
        let entries = files.entries(head.group);
        let Some(entry) = entries.get(head.name) else {
            return Ok(());
        };
        let path = self.run.plan.path(entry);
        self.format.end(
            &Member {
                path: &path,
                attr: &head.attr,
                body: Body::Data(&head.layout),
                nlink: count(entries.len()),
            },
            &mut self.out,
        )?;
        let links = self.format.links();
        if links == Links::AllHaveContent && head.name > 0 {
            add(&self.run.counts.links);
            return Ok(());
        }
        add(&self.run.counts.files);
        add(&self.run.stats.files_done);
        if links == Links::Named {
            for other in entries.iter().skip(head.name + 1) {
                self.link(other, &head, entries.len(), Body::LinkTo(&path))?;
            }
        }
        Ok(())
    }

    /// Stores a further name of a file.
    fn link(&mut self, entry: &Entry, head: &Head, names: usize, body: Body<'_>) -> Result<()> {
        let path = self.run.plan.path(entry);
        let stored = self.store(&Member {
            path: &path,
            attr: &head.attr,
            body,
            nlink: count(names),
        });
        match stored {
            Ok(()) => {
                add(&self.run.counts.links);
                Ok(())
            }
            Err(error) => self.skip(error, &self.run.plan.shown(entry)),
        }
    }

    /// Leaves out a file with all its names.
    fn give_up(&mut self, files: &Files, group: usize, error: Error) -> Result<()> {
        add(&self.run.stats.files_done);
        let entries = files.entries(group);
        self.skip(error, &self.run.plan.shown_all(entries))
    }
}

/// Where a file stands.
#[derive(Default)]
enum Open {
    /// No file is open, or the one that was is left out.
    #[default]
    Nothing,
    /// Its content comes next; until the first piece is there it can still be left out.
    Announced(Box<Head>),
    /// It is in the archive.
    Begun(Box<Head>),
}

fn count(names: usize) -> u32 {
    u32::try_from(names).unwrap_or(u32::MAX)
}

fn tell_losses(run: &Run<'_>, losses: Losses) {
    let told = [
        (losses.times, "times"),
        (losses.owners, "owners"),
        (losses.devices, "device numbers"),
    ];
    for (count, what) in told.into_iter().filter(|(count, _)| *count > 0) {
        run.note(&format!(
            "{count} {what} are out of the range of the format; the nearest it can hold stand for them"
        ));
    }
}
