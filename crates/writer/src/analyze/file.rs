//! Reading one file for all that want to know something of it.

use std::io;

use durin_format::digest::Hasher;

use super::{Findings, FoundIndex, Kind, Pass, Ranked};
use crate::categorize::incompressible::{self, Trial};
use crate::categorize::{Categorizer, Claim, DeltaTrial, Part, Probe, probe, suits};
use crate::category::{Category, DEFAULT_NAME};
use crate::files::{FileIndex, OpenFile, Opener};
use crate::order::sketch_kind;
use crate::sketch::{SketchKind, Sketcher};
use crate::sparse::Extent;
use crate::stats::{Stage, StageThread};

/// Bytes read at once: enough to make system calls cheap, few enough to stay in the processor's cache.
const READ_LEN: usize = 128 << 10;

/// What a thread needs.
pub(super) struct Worker<'a> {
    pass: &'a Pass<'a>,
    opener: Opener<'a>,
    buffer: Vec<u8>,
    sketchers: Vec<Sketcher>,
    trial: Option<Trial>,
    delta: DeltaTrial,
    thread: StageThread,
}

/// What is known of a file while it is read.
struct File<'a> {
    pass: &'a Pass<'a>,
    hasher: Option<Hasher>,
    /// What the first categorizer says that has recognized the file, and its place.
    claim: Option<(usize, Claim)>,
    findings: Option<(usize, incompressible::Findings)>,
    wants_sketch: bool,
}

impl<'a> Worker<'a> {
    pub(super) fn new(pass: &'a Pass<'a>, stage: Stage) -> Self {
        let options = &pass.context.options.categorize;
        let is_tried = options.categorizers.contains(&Categorizer::Incompressible);
        Self {
            pass,
            opener: Opener::new(pass.context, pass.tree, pass.files, pass.root),
            buffer: vec![0; READ_LEN],
            sketchers: pass
                .kinds
                .iter()
                .map(|kind| Sketcher::new(*kind, pass.slice_len))
                .collect(),
            trial: is_tried
                .then(|| Trial::new(&options.incompressible, READ_LEN).ok())
                .flatten(),
            delta: DeltaTrial::default(),
            thread: pass.context.stats.enter(stage),
        }
    }

    /// Adds what can be said of a file; one that cannot be read is reported, unless the user wants to stop.
    pub(super) fn work(&mut self, index: FileIndex, is_hashed: bool, findings: &mut Findings) {
        let pass = self.pass;
        let file = *pass.files.file(index);
        let display = || pass.tree.display(file.entry);
        pass.context.stats.set_current(display);
        self.thread.job(file.size, display);
        let read = self.read(index, is_hashed, findings);
        self.thread.job_end();
        match read {
            Ok(len) => self.thread.did(1, len),
            Err(_) if pass.context.is_cancelled() => {}
            Err(error) => pass.files.lose(index, pass.tree, pass.context, &error),
        }
    }

    /// Returns how many bytes have been read.
    fn read(
        &mut self,
        index: FileIndex,
        is_hashed: bool,
        findings: &mut Findings,
    ) -> io::Result<u64> {
        let pass = self.pass;
        let file = pass.files.file(index);
        let open = self.opener.open(file)?;
        open.will_be_read(file);
        let whole = [Extent {
            offset: 0,
            len: file.size,
        }];
        let extents = pass.sparse.get(&index);
        let sketched_max = pass.context.options.max_similarity_size.unwrap_or(u64::MAX);
        let mut state = File {
            pass,
            hasher: pass
                .digest
                .filter(|_| is_hashed)
                .map(|digest| digest.hasher()),
            claim: None,
            findings: None,
            wants_sketch: !pass.kinds.is_empty() && file.size <= sketched_max,
        };
        for sketcher in &mut self.sketchers {
            sketcher.begin(file.size);
        }
        let mut is_begun = false;
        let mut len = 0;
        'extents: for extent in extents.map_or(&whole[..], |extents| extents) {
            if let Some(hasher) = state.hasher.as_mut().filter(|_| extents.is_some()) {
                hasher.update(&extent.offset.to_le_bytes());
                hasher.update(&extent.len.to_le_bytes());
            }
            let mut done = 0;
            while done < extent.len {
                let offset = extent.offset + done;
                let piece = read_piece(pass, &open, offset, extent.len - done, &mut self.buffer)?;
                if !is_begun {
                    is_begun = true;
                    let is_sparse = extents.is_some();
                    let head = if is_sparse { &[] } else { piece };
                    let probe = Probe::new(head, file.size, (!is_sparse).then_some(&open));
                    state.begin(index, &probe, &mut self.delta);
                }
                done += piece.len() as u64;
                len += piece.len() as u64;
                state.take(offset, piece, &mut self.sketchers, self.trial.as_mut());
                if state.knows_enough() {
                    break 'extents;
                }
            }
        }
        if let Some(hasher) = state.hasher.take() {
            pass.context.stats.hashed_files.add(1);
            let mut hash = hasher.finish();
            // Keeps data that look like the extents of another file apart from them.
            hash.push(u8::from(extents.is_some()));
            if open.is_modified(pass.tree, file)? {
                // It may change again until it is read, and must not take the place of another file then.
                hash.extend_from_slice(&index.to_le_bytes());
            }
            findings.hashes.push((index, hash.into()));
        }
        if !self.sketchers.is_empty() {
            findings.sketched.push(index);
            for (sketch, slices) in self.sketchers.iter_mut().map(Sketcher::finish) {
                findings.sketches.push(sketch);
                if !slices.sketches.is_empty() {
                    findings.slices.push((index, slices));
                }
            }
        }
        if let Some(ranked) = state.finish() {
            findings.kinds.push((index, ranked));
        }
        Ok(len)
    }
}

/// Reads the next bytes of an extent.
fn read_piece<'b>(
    pass: &Pass<'_>,
    open: &OpenFile,
    offset: u64,
    left: u64,
    buffer: &'b mut [u8],
) -> io::Result<&'b [u8]> {
    if pass.context.is_cancelled() {
        return Err(io::ErrorKind::Interrupted.into());
    }
    let len = usize::try_from(left)
        .unwrap_or(usize::MAX)
        .min(buffer.len());
    let piece = &mut buffer[..len];
    open.read_exact_at(piece, offset)?;
    Ok(piece)
}

impl File<'_> {
    /// Asks the categorizers in their order, up to the first that knows the file.
    fn begin(&mut self, index: FileIndex, start: &Probe<'_>, delta: &mut DeltaTrial) {
        let options = &self.pass.context.options.categorize;
        for (rank, categorizer) in options.categorizers.iter().enumerate() {
            let claim = match categorizer {
                Categorizer::Incompressible => {
                    let findings =
                        incompressible::Findings::new(options.incompressible, start.len());
                    self.findings = Some((rank, findings));
                    None
                }
                Categorizer::Hotness => {
                    let is_hot = self.pass.hot.contains(&index);
                    is_hot.then(|| Claim::Whole(named("hotness")))
                }
                Categorizer::Delta => delta.claim(start),
                other => probe(*other, start).filter(|claim| self.suits(claim)),
            };
            if let Some(claim) = claim {
                self.claim = Some((rank, claim));
                break;
            }
        }
        if let (Some((_, claim)), None) = (&self.claim, &self.findings) {
            self.wants_sketch &= self.wants_sketch_of(claim);
        }
    }

    /// Whether the codecs of all categories can take their data.
    fn suits(&self, claim: &Claim) -> bool {
        let suits = |category: &Category| {
            let spec = self.pass.context.options.compression.of(&category.name);
            suits(spec, category)
        };
        match claim {
            Claim::Whole(category) => suits(category),
            Claim::Fragments(parts) => parts.iter().all(|part| suits(&part.category)),
            // That is known when the pixels are.
            Claim::Image(_) => true,
        }
    }

    fn wants_sketch_of(&self, claim: &Claim) -> bool {
        let orders = &self.pass.context.options.order;
        let is_wanted = |name: &str| sketch_kind(orders.of(name)) != SketchKind::None;
        match claim {
            Claim::Whole(category) => is_wanted(&category.name),
            Claim::Fragments(parts) => parts.iter().any(|part| is_wanted(&part.category.name)),
            Claim::Image(_) => is_wanted("fits/image"),
        }
    }

    fn take(
        &mut self,
        offset: u64,
        piece: &[u8],
        sketchers: &mut [Sketcher],
        trial: Option<&mut Trial>,
    ) {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(piece);
            self.pass.context.stats.hashed_bytes.add(piece.len() as u64);
        }
        if self.wants_sketch {
            for sketcher in &mut *sketchers {
                sketcher.update(offset, piece);
            }
            let end = offset + piece.len() as u64;
            self.wants_sketch = !sketchers.iter().all(|sketcher| sketcher.has_enough(end));
        }
        if let Some((_, Claim::Image(image))) = &mut self.claim {
            image.look(offset, piece);
        }
        if let (Some((_, findings)), Some(trial)) = (&mut self.findings, trial) {
            findings.take(trial, offset, piece);
        }
    }

    /// Whether reading on would tell nothing new.
    fn knows_enough(&self) -> bool {
        let is_image = matches!(self.claim, Some((_, Claim::Image(_))));
        let is_settled = |(_, findings): &(_, incompressible::Findings)| findings.is_settled();
        self.hasher.is_none()
            && !self.wants_sketch
            && !is_image
            && self.findings.as_ref().is_none_or(is_settled)
    }

    /// Returns the categories of the file, unless it is of the default one.
    fn finish(mut self) -> Option<Ranked> {
        let findings = self.findings.take();
        let tried = findings.and_then(|(rank, findings)| {
            let ranges = findings.finish();
            let kind = self.incompressible(&ranges)?;
            Some(Ranked { rank, kind })
        });
        tried.or_else(|| {
            let (rank, claim) = self.claim.take()?;
            let kind = match claim {
                Claim::Whole(category) => Kind::Whole(self.pass.number(category)),
                Claim::Fragments(parts) => self.fragments(parts),
                Claim::Image(image) => {
                    let claim = Claim::Fragments(image.parts()?);
                    let Claim::Fragments(parts) = Some(claim).filter(|claim| self.suits(claim))?
                    else {
                        return None;
                    };
                    self.fragments(parts)
                }
            };
            Some(Ranked { rank, kind })
        })
    }

    fn fragments(&self, parts: Vec<Part>) -> Kind {
        let numbered = parts
            .into_iter()
            .map(|part| (part.len, self.pass.number(part.category)));
        Kind::Fragments(numbered.collect())
    }

    fn incompressible(&self, ranges: &[incompressible::Range]) -> Option<Kind> {
        if !ranges.iter().any(|range| range.is_incompressible) {
            return None;
        }
        let number = self.pass.number(named("incompressible"));
        if let [range] = ranges {
            return range.is_incompressible.then_some(Kind::Whole(number));
        }
        let fragments = ranges.iter().map(|range| {
            let number: FoundIndex = if range.is_incompressible { number } else { 0 };
            (range.len, number)
        });
        Some(Kind::Fragments(fragments.collect()))
    }
}

/// A category of which nothing but the name is known.
fn named(name: &str) -> Category {
    debug_assert_ne!(name, DEFAULT_NAME);
    Category {
        name: name.to_owned(),
        metadata: None,
        granularity: 1,
        subcategory: String::new(),
    }
}
