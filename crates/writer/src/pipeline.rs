//! Joins the stages and starts their threads.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use durin_codec::Spec;
use durin_format::Result;
use durin_format::history::History;
use durin_format::metadata::{FreezeStyle, Metadata};
use durin_format::section::SectionType;

use crate::analyze::{Analysis, analyze};
use crate::category::Stream;
use crate::coding::Coding;
use crate::compress;
use crate::context::{Context, Failure};
use crate::dedupe::Contents;
use crate::emit::Emitter;
use crate::estimate::{Estimate, thin_streams};
use crate::figures;
use crate::files::Files;
use crate::filter::Decision;
use crate::memory::{Budget, Facts, peak_bytes};
use crate::metadata::Described;
use crate::options::BuildOptions;
use crate::order::{ORDER_BYTES_PER_CONTENT_MAX, ORDER_BYTES_PER_SLICE_MAX};
use crate::read::{Reader, Source};
use crate::report::Report;
use crate::sampler::Sampler;
use crate::scan;
use crate::sections::Section;
use crate::segment::{Bounds, Chunks, IndexLimits, Permit, Queues, Segmenter};
use crate::sparse::{self, SparseFiles};
use crate::stats::{Phase, Stage, Stats};
use crate::streams::streams;
use crate::sync::{no_thread, run_detached};
use crate::times::warn_if_coarse;
use crate::transform::transform;
use crate::tree::usize_of;
use durin_format::events::Events;

/// Builds an image and writes it to `output`, from its first byte to its last without going back.
///
/// `stats` is kept up to date while it runs and must be fresh. `cancel` ends the build within a tenth of a second or
/// so, except while `output` itself blocks; a thread that is compressing then is left behind and ends with its block.
///
/// # Errors
/// `InvalidInput` for options that cannot be used; `Io` if the root of the input cannot be opened or the output refuses;
/// `Limit` for a tree that does not fit into an image; `Cancelled`. What cannot be read below the root is no error of
/// the build: it is reported to `events` and counted in the report. But for one: `Io` if there are no descriptors left to
/// open it with, which says nothing about the input.
pub fn build(
    options: &BuildOptions,
    output: &mut dyn Write,
    stats: &Stats,
    events: &dyn Events,
    cancel: &AtomicBool,
) -> Result<Report> {
    options.validate()?;
    let build = |context: Context<'_>| run(context, output);
    in_context(options, stats, events, cancel, None, build)
}

/// Does what [`build`] does, but compresses only some of the blocks and writes nothing: see the module `estimate`.
///
/// # Errors
/// As [`build`].
pub fn estimate(
    options: &BuildOptions,
    stats: &Stats,
    events: &dyn Events,
    cancel: &AtomicBool,
) -> Result<Estimate> {
    options.validate()?;
    let sampler = Arc::default();
    let estimate = |context: Context<'_>| run(context, &mut io::sink());
    let report = in_context(options, stats, events, cancel, Some(&sampler), estimate)?;
    let stages = report.stages.iter();
    let besides = stages.filter(|times| times.stage != Stage::Compress);
    let cpu_besides = besides.map(|times| times.busy).sum();
    Ok(Estimate::of(&sampler, report, cpu_besides))
}

fn run(mut context: Context<'_>, output: &mut dyn Write) -> Result<Report> {
    let Context {
        options,
        stats,
        events,
        ..
    } = context;
    let begin = |phase, message: &str| {
        stats.set_phase(phase);
        events.info(message);
    };
    begin(Phase::Scanning, &format!("scanning '{}'", options.input));
    let mut scanned = scan::scan(context)?;
    let files = Files::of(&scanned.tree, context);
    transform(context, &mut scanned.tree, &files)?;
    let tree = &scanned.tree;
    warn_if_coarse(context, tree);

    begin(Phase::Hashing, "looking at files");
    let root = scanned.root.as_fd();
    let sparse = sparse::find(context, tree, &files, root);
    let hole_bytes = sparse::hole_bytes(&sparse, &files);
    stats
        .allocated_bytes
        .add(stats.original_bytes.get() - hole_bytes);
    context.check_cancelled()?;
    let analysis = analyze(context, tree, &files, &sparse, root)?;
    let data_len = data_len(&analysis.contents, &files, &sparse);
    context.block_size_bits = options.block_size_bits_of(data_len);
    let thread = stats.enter(Stage::Order);
    let (categories, mut streams) = streams(context, tree, &files, &analysis)?;
    if let Some(sampler) = context.sampler {
        thin_streams(sampler, &mut streams);
    }
    drop(thread);
    context.check_cancelled()?;
    let Analysis {
        contents, sketches, ..
    } = analysis;
    let ordering_bytes = sketches.bytes()
        + ORDER_BYTES_PER_CONTENT_MAX * u64::from(contents.len())
        + ORDER_BYTES_PER_SLICE_MAX * sketches.slice_count();
    drop(sketches);

    begin(Phase::Writing, "building blocks");
    let mut emitter = Emitter::start(context, output)?;
    let source = Source {
        context,
        tree,
        files: &files,
        sparse: &sparse,
        contents: &contents,
        streams: &streams,
        root,
    };
    let budget = Budget::of(context, &Facts::of(&source, ordering_bytes));
    let chunks = write_blocks(&source, &budget, &mut emitter)?;

    begin(Phase::Metadata, "building metadata");
    let thread = stats.enter(Stage::Metadata);
    figures::count_small_files(context, &files, &contents, &chunks);
    let by_category = figures::by_category(&source, &categories, &chunks, emitter.block_lens());
    let described = Described {
        context,
        tree,
        files: &files,
        contents: &contents,
        chunks: &chunks,
        categories: &categories,
        block_count: emitter.next_number(),
    };
    let metadata = described.build()?;
    let contents_count = u64::from(contents.len());
    drop((chunks, contents, streams, sparse, files, scanned));
    stats.inodes.add(metadata.inodes.len() as u64);
    let sizes = write_metadata(context, metadata, &mut emitter)?;
    if options.section_index {
        emitter.section_index()?;
    }
    emitter.finish()?;
    drop(thread);
    stats.set_phase(Phase::Finished);
    Ok(Report {
        contents: contents_count,
        categories: by_category,
        metadata_bytes: sizes.data,
        compressed_metadata_bytes: sizes.payload,
        peak_memory_bytes: peak_bytes(),
        memory_limit: budget.limit,
        memory_estimate: budget.estimate,
        ..Report::of(stats)
    })
}

/// Scans the input and returns what the filter says of each entry, in the order of paths; nothing is built.
///
/// Entries below excluded directories are not looked at.
///
/// # Errors
/// As the scan of [`build`]; `InvalidInput` if the input is a list, to which no filter applies.
pub fn decide(
    options: &BuildOptions,
    stats: &Stats,
    events: &dyn Events,
    cancel: &AtomicBool,
) -> Result<Vec<Decision>> {
    in_context(options, stats, events, cancel, None, scan::decide)
}

/// Does `work`; what made it end early comes before what it says itself.
fn in_context<T>(
    options: &BuildOptions,
    stats: &Stats,
    events: &dyn Events,
    cancel: &AtomicBool,
    sampler: Option<&Arc<Sampler>>,
    work: impl FnOnce(Context<'_>) -> Result<T>,
) -> Result<T> {
    let failure = Failure::default();
    let mut context = Context::new(options, stats, events, cancel, &failure);
    context.sampler = sampler;
    let result = work(context);
    failure.into_inner().map_or(result, Err)
}

impl Source<'_> {
    /// Returns how a stream is compressed.
    pub(crate) fn coding(&self, stream: &Stream) -> Coding {
        let block_size = self.context.block_size();
        let block_len = u64::from(stream.settings.block_len(block_size));
        Coding {
            spec: stream.settings.compression.clone(),
            metadata: stream.settings.metadata.clone(),
            block_len: usize_of(self.stream_data_len(stream).min(block_len)),
            general: stream
                .settings
                .compression
                .requires_metadata()
                .then(|| self.context.options.compression.default_value().clone()),
        }
    }
}

/// Returns how many bytes all contents have, without holes.
fn data_len(contents: &Contents, files: &Files, sparse: &SparseFiles) -> u64 {
    let first = |content| contents.files(content).first();
    let files_once = (0..contents.len()).filter_map(first);
    let lens = files_once.map(|file| sparse::data_len(sparse, files, *file));
    // What files say of themselves may be any number.
    lens.fold(0, u64::saturating_add)
}

fn stream_block_len(context: Context<'_>, stream: &Stream) -> u64 {
    u64::from(stream.settings.block_len(context.block_size()))
}

/// Reads all contents and writes them as blocks.
///
/// Three kinds of threads work side by side: those that read fill runs, one cuts them into blocks, those that compress
/// make sections, and this one writes them. The queues between them hold as many items as there are buffers and
/// permits, so that nobody waits to send. If one of them fails it closes its queues, which ends the others.
fn write_blocks(source: &Source<'_>, budget: &Budget, emitter: &mut Emitter<'_>) -> Result<Chunks> {
    let context = source.context;
    let options = context.options;
    let data_len = source.data_len();
    context.stats.segment_bytes_total.add(data_len);

    let readers = options.scanner_workers.max(1);
    let (free, free_buffers) = filled(budget.read_buffers, Vec::new);
    let (run_sender, runs) = bounded(budget.read_buffers);
    let (permit_sender, permits) = filled(budget.blocks_in_flight, || Permit);
    let (blocks, block_receiver) = bounded(budget.blocks_in_flight);
    let (section_sender, sections) = unbounded();
    let (spare_sender, spare) = bounded(budget.compressors.workers);
    if data_len > 0 {
        let codings = source.streams.iter().map(|stream| source.coding(stream));
        let pool = compress::Pool {
            workers: budget.compressors.workers,
            blocks_waiting: budget.blocks_waiting(),
            crew: budget.compressors.crew(),
            niceness: options.compress_niceness,
            codings: codings.collect(),
            stats: context.stats,
            sampler: context.sampler,
        };
        if let Some(sampler) = context.sampler {
            let block_count = |stream| {
                let block_len = stream_block_len(context, stream);
                source.stream_data_len(stream).div_ceil(block_len)
            };
            sampler.plan(source.streams.iter().map(block_count));
        }
        pool.start(&block_receiver, &section_sender, &spare_sender)?;
    }
    drop((block_receiver, section_sender, spare_sender));

    let reader = Reader::new(source);
    thread::scope(|scope| {
        for number in 0..readers {
            let (free_buffers, run_sender) = (free_buffers.clone(), run_sender.clone());
            let reader = &reader;
            let work = move || reader.work(&free_buffers, &run_sender);
            match thread::Builder::new().spawn_scoped(scope, work) {
                // The others do it, then.
                Err(_) if number > 0 => break,
                started => drop(started.map_err(no_thread)?),
            }
        }
        drop((free_buffers, run_sender));
        let queues = Queues {
            runs,
            free,
            permits,
            blocks,
            spare,
        };
        let room = source
            .streams
            .iter()
            .map(|stream| stream.settings.window.bloom_bits);
        let mut windows = source.streams.iter().map(|stream| stream.settings.window);
        let is_searched = windows.any(|window| window.size_bits > 0);
        let mixed = source.streams.iter();
        let mixed = mixed.map(|stream| stream.settings.mixed_block_size.ilog2());
        let bounds = Bounds {
            early_bits: mixed.fold(context.block_size_bits, u32::min),
            index: IndexLimits {
                entries_max: budget.index_entries_max,
                room: room.max().unwrap_or(0),
            },
            history_bytes: budget.history_bytes,
            hash_bytes: budget.hash_bytes,
            // What nobody searches needs no history.
            data_len: if is_searched { data_len } else { 0 },
            streams: source.streams.len() as u64,
        };
        let segmenter = Segmenter::new(source, bounds, queues);
        let segment = || segmenter.run();
        let segmenter = thread::Builder::new()
            .spawn_scoped(scope, segment)
            .map_err(no_thread)?;
        let written = emitter.blocks(&sections, &permit_sender);
        drop((sections, permit_sender));
        let chunks = match segmenter.join() {
            Ok(chunks) => chunks,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        // If writing fails, the segmenter only says that nobody takes its blocks.
        written.and(chunks)
    })
}

/// Returns a queue that is full.
fn filled<T>(count: usize, item: impl Fn() -> T) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = bounded(count);
    for _ in 0..count {
        // There is room, and the receiver is there.
        sender.try_send(item()).ok();
    }
    (sender, receiver)
}

/// Bytes of the schema and the metadata.
struct MetadataSizes {
    /// Before compression.
    data: u64,
    /// As written.
    payload: u64,
}

/// Writes the schema, the metadata and the history.
fn write_metadata(
    context: Context<'_>,
    metadata: Metadata,
    emitter: &mut Emitter<'_>,
) -> Result<MetadataSizes> {
    let options = context.options;
    let first = emitter.next_number();
    let specs = [
        options.schema_compression.clone(),
        options.metadata_compression.clone(),
        options.history_compression.clone(),
    ];
    let history = options.history.clone();
    let entry = context.stats.entry(Stage::Metadata);
    // Compressing takes long for millions of files, and must not keep a user waiting who wants to stop.
    let sections = run_detached(context, move || {
        let _thread = entry.enter();
        let [schema_spec, metadata_spec, history_spec] = specs;
        let frozen = metadata.freeze_as(FreezeStyle::for_image(!metadata_spec.is_null()))?;
        drop(metadata);
        let history = history.map(|entry| {
            let entries = vec![entry];
            History { entries }.encode()
        });
        let parts = [
            (
                SectionType::MetadataV2Schema,
                schema_spec,
                Some(frozen.schema),
            ),
            (SectionType::MetadataV2, metadata_spec, Some(frozen.data)),
            (SectionType::History, history_spec, history),
        ];
        (first..)
            .zip(parts)
            .filter_map(|(number, (kind, spec, data))| Some(encode(number, kind, &spec, data?)))
            .collect::<Result<Vec<_>>>()
    })?;
    let mut sizes = MetadataSizes {
        data: 0,
        payload: 0,
    };
    for section in &sections {
        emitter.section(section)?;
        if section.section_type != SectionType::History {
            sizes.data += section.data_len;
            sizes.payload += section.payload.len() as u64;
        }
    }
    Ok(sizes)
}

fn encode(number: u32, section_type: SectionType, spec: &Spec, data: Vec<u8>) -> Result<Section> {
    let mut encoder = spec.encoder(data.len(), None)?;
    Section::encode(
        number,
        section_type,
        &mut *encoder,
        spec.compression_type(),
        data,
    )
}
