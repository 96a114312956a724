//! Trees that take much memory where a build is careless: very many files, a very large one, and repetitions that are
//! nowhere at the same place of a block.
//!
//! Each is made from a fixed seed, so that the same size gives the same bytes.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use crate::compare::{Aspects, trees};
use crate::made_tree::make_many;
use crate::memory_group::MemoryGroup;
use crate::programs::Programs;
use crate::random::Random;
use crate::roundtrip::{POSITIONS, remove_tree};
use crate::run::Outcome;
use crate::tree::snapshot;

/// Long enough for a slow machine.
const TIME_MAX: Duration = Duration::from_secs(4 * 3600);

/// A tree to pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Small files, a quarter of them empty and half of them equal to others.
    Million,
    /// One file, nearly all of it holes.
    Sparse,
    /// One file of the same data over and over, each time changed a little and after an odd number of other bytes.
    Near,
    /// Files like disk images of virtual machines: the same data behind 1 to 4,095 bytes, each with changes of its own.
    Images,
}

/// How large a case is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// As the name says: a million files, 20 GiB, 3 GiB, 50 images of 64 MiB.
    Full,
    /// The same shapes in some seconds.
    Quick,
}

/// What a case holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// Bytes of all files without holes.
    pub data_bytes: u64,
    /// Bytes that an image takes at least, because nothing can shrink them: random bytes, each counted once.
    pub distinct_bytes: u64,
}

/// Building a case within a limit, and reading it back.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// The programs under test.
    pub programs: &'a Programs,
    /// An existing directory, on a disk with room for the case, its image and what is unpacked.
    pub work: &'a Path,
    /// What is built.
    pub case: Case,
    /// How large.
    pub scale: Scale,
    /// Further arguments of the build: the level.
    pub build_args: &'a [&'a str],
    /// Whether the build is expected to find repetitions that are not whole files.
    pub finds_repetitions: bool,
    /// The limit that the build is told, in MiB.
    pub limit_mib: u64,
    /// What it is killed above, in MiB.
    pub kill_mib: u64,
}

/// How a trial went.
#[derive(Debug)]
pub struct TrialReport {
    /// What was built.
    pub made: Made,
    /// How the build ended.
    pub build: Outcome,
    /// Bytes of the image.
    pub image_bytes: u64,
    /// Why memory was watched by sampling and not by a control group, if it was.
    pub without_group: Option<String>,
    /// What is wrong; nothing if the trial went well.
    pub problems: Vec<String>,
}

impl Trial<'_> {
    /// Makes the tree, builds an image of it, unpacks that and compares.
    ///
    /// # Errors
    /// What could not be written or read. What a program does wrong is a problem of the report.
    pub fn run(&self) -> io::Result<TrialReport> {
        let source = self.work.join(self.case.name());
        fs::create_dir(&source)?;
        let made = self.case.make(&source, self.scale)?;
        let image = self.work.join("stress.dwarfs");
        let (build, kills, without_group) = self.build(&source, &image);
        let mut report = TrialReport {
            made,
            build,
            image_bytes: 0,
            without_group,
            problems: Vec::new(),
        };
        if kills > 0 {
            report
                .problems
                .push(format!("killed above {} MiB", self.kill_mib));
        }
        if report.build.code == Some(0) {
            report.image_bytes = fs::metadata(&image)?.len();
            if self.finds_repetitions {
                self.check_size(&mut report);
            }
            report.problems.extend(self.read_back(&source, &image)?);
            fs::remove_file(&image)?;
        } else {
            report.problems.push(format!("mkdwarfs: {}", report.build));
        }
        remove_tree(&source)?;
        Ok(report)
    }

    fn build(&self, source: &Path, image: &Path) -> (Outcome, u64, Option<String>) {
        let limit = format!("-L{}m", self.limit_mib);
        let kill_bytes = self.kill_mib << 20;
        let program = self.programs.path("mkdwarfs");
        let (run, group) = match MemoryGroup::new(kill_bytes) {
            Ok(group) => (group.run(program), Ok(group)),
            Err(why) => {
                let run = self.programs.run("mkdwarfs");
                (run.memory_max(kill_bytes), Err(why))
            }
        };
        let run = run.arg("-i").arg(source).arg("-o").arg(image);
        let run = run.args([&limit, "--progress=none"]).args(self.build_args);
        let outcome = run.time_max(TIME_MAX).output();
        let kills = group.as_ref().map_or(0, MemoryGroup::kill_count);
        (outcome, kills, group.err())
    }

    /// Repetitions must have been found, wherever they are.
    fn check_size(&self, report: &mut TrialReport) {
        let Made {
            data_bytes,
            distinct_bytes,
        } = report.made;
        // A changed byte costs what the search does not see around it, and a million files take their place: 16 bytes each at
        // levels that do not compress the metadata.
        let bytes_max = distinct_bytes * 5 / 4 + data_bytes / 12 + (16 << 20);
        if report.image_bytes > bytes_max {
            report.problems.push(format!(
                "the image has {} KiB, of at most {}: repetitions were not found",
                report.image_bytes >> 10,
                bytes_max >> 10
            ));
        }
    }

    fn read_back(&self, source: &Path, image: &Path) -> io::Result<Vec<String>> {
        let expected = snapshot(source, &POSITIONS)?;
        let target = self.work.join("extracted");
        fs::create_dir(&target)?;
        let outcome = self.programs.extract(image, &target).output();
        let aspects = Aspects {
            owner: crate::skip::is_root(),
            ..Aspects::all(1_000_000_000)
        };
        let mut problems = trees(&expected, &snapshot(&target, &POSITIONS)?, &aspects);
        if outcome.code != Some(0) {
            problems.insert(0, format!("dwarfsextract: {outcome}"));
        }
        remove_tree(&target)?;
        Ok(problems)
    }
}

impl Case {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Million, Self::Sparse, Self::Near, Self::Images];

    /// Its name on a command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Million => "million",
            Self::Sparse => "sparse",
            Self::Near => "near",
            Self::Images => "images",
        }
    }

    /// Makes the tree in an existing directory.
    ///
    /// # Errors
    /// Whatever could not be written.
    pub fn make(self, top: &Path, scale: Scale) -> io::Result<Made> {
        let is_full = scale == Scale::Full;
        match self {
            Self::Million => {
                let files = if is_full { 1_000_000 } else { 50_000 };
                make_many(top, files)?;
                Ok(Made {
                    data_bytes: files as u64 * 20,
                    distinct_bytes: 0,
                })
            }
            Self::Sparse => sparse(top, if is_full { 20 << 30 } else { 2 << 30 }),
            Self::Near => near(top, if is_full { 3 << 30 } else { 48 << 20 }),
            Self::Images => images(top, if is_full { 64 << 20 } else { 1 << 20 }),
        }
    }
}

/// Islands of data at odd places, one at the very end.
fn sparse(top: &Path, len: u64) -> io::Result<Made> {
    const ISLANDS: u64 = 64;
    const ISLAND_LEN: usize = 150_001;
    let mut random = Random::new(20);
    let file = File::create(top.join("sparse"))?;
    file.set_len(len)?;
    let room = len / ISLANDS;
    for island in 0..ISLANDS - 1 {
        let start = island * room + random.below(room - ISLAND_LEN as u64);
        file.write_all_at(&random.bytes(ISLAND_LEN), start)?;
    }
    file.write_all_at(&random.bytes(ISLAND_LEN), len - ISLAND_LEN as u64)?;
    let data_bytes = ISLANDS * ISLAND_LEN as u64;
    Ok(Made {
        data_bytes,
        distinct_bytes: data_bytes,
    })
}

/// Copies of a master; each has some bytes changed and 1 to 4,095 others before it.
fn near(top: &Path, len: u64) -> io::Result<Made> {
    const CHANGES: u64 = 24;
    // Neither a whole number of blocks nor a fraction of one.
    let master_len = (len / 61) | 1;
    let mut random = Random::new(3);
    let master = random.bytes(to_usize(master_len));
    let mut file = BufWriter::new(File::create(top.join("near"))?);
    let (mut data_bytes, mut distinct_bytes) = (0, master_len);
    while data_bytes < len {
        let mut copy = master.clone();
        for _ in 0..CHANGES {
            let place = to_usize(random.below(master_len));
            copy[place] ^= 0x55;
        }
        let between_len = to_usize(1 + random.below(4095));
        let between = random.bytes(between_len);
        file.write_all(&between)?;
        file.write_all(&copy)?;
        data_bytes += (between.len() + copy.len()) as u64;
        distinct_bytes += between.len() as u64;
    }
    file.flush()?;
    Ok(Made {
        data_bytes,
        distinct_bytes,
    })
}

/// Fifty files of random bytes, texts and zeros, as they lie on disks.
fn images(top: &Path, len: u64) -> io::Result<Made> {
    const COUNT: u64 = 50;
    const PART_LEN: usize = 64 << 10;
    const SECTOR_LEN: usize = 4096;
    const CHANGES: u64 = 8;
    let mut random = Random::new(50);
    let mut master = Vec::new();
    let mut distinct_bytes = 0;
    while (master.len() as u64) < len {
        match random.below(4) {
            0 => master.resize(master.len() + PART_LEN, 0),
            1 => master.extend(random.text(PART_LEN)),
            _ => {
                master.extend(random.bytes(PART_LEN));
                distinct_bytes += PART_LEN as u64;
            }
        }
    }
    let mut data_bytes = 0;
    for index in 0..COUNT {
        let shift = to_usize(1 + (index * 4094) / (COUNT - 1));
        let mut image = random.bytes(shift);
        image.extend_from_slice(&master);
        for _ in 0..CHANGES {
            let sector = to_usize(random.below((master.len() / SECTOR_LEN) as u64));
            let start = shift + sector * SECTOR_LEN;
            image[start..start + SECTOR_LEN].copy_from_slice(&random.bytes(SECTOR_LEN));
        }
        distinct_bytes += shift as u64 + CHANGES * SECTOR_LEN as u64;
        data_bytes += image.len() as u64;
        fs::write(top.join(format!("disk-{index:02}.img")), image)?;
    }
    Ok(Made {
        data_bytes,
        distinct_bytes,
    })
}

fn to_usize(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_as_promised() {
        for (case, distinct_share) in [(Case::Near, 10), (Case::Images, 5)] {
            let dir = tempfile::tempdir().unwrap();
            let made = case.make(dir.path(), Scale::Quick).unwrap();
            let files = fs::read_dir(dir.path()).unwrap();
            let len: u64 = files
                .map(|file| file.unwrap().metadata().unwrap().len())
                .sum();
            assert_eq!(len, made.data_bytes);
            assert!(
                made.distinct_bytes * distinct_share < made.data_bytes,
                "{made:?}"
            );
        }
    }

    #[test]
    fn sparse_file_is_sparse() {
        use std::os::unix::fs::MetadataExt;

        let dir = tempfile::tempdir().unwrap();
        let made = Case::Sparse.make(dir.path(), Scale::Quick).unwrap();
        let found = fs::metadata(dir.path().join("sparse")).unwrap();
        assert_eq!(found.len(), 2 << 30);
        assert!(found.blocks() * 512 < 4 * made.data_bytes);
    }
}
