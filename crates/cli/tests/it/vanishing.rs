//! What happens under a mount: the image is replaced, removed, written over, cut short, or lies on a disk that goes away.
//! Names and attributes stay, contents are right or an input/output error, told once, and the driver lives.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use durin_testkit::mount::{self, Mount};
use durin_testkit::random::Random;
use durin_testkit::{require, skip};

use crate::support::{Place, mkdwarfs};

/// Files of the tree, each in some blocks of its own.
pub(crate) const FILES: usize = 8;
const FILE_LEN: usize = 200_000;

fn driver() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_dwarfs"))
}

fn name(number: usize) -> String {
    format!("f{number}")
}

pub(crate) fn content(number: usize) -> Vec<u8> {
    Random::new(number as u64).text(FILE_LEN)
}

pub(crate) fn make_image(place: &Place, options: &[&str]) -> PathBuf {
    for number in 0..FILES {
        fs::write(place.tree().join(name(number)), content(number)).unwrap();
    }
    let image = place.path("image.dwarfs");
    let build = mkdwarfs().arg("-i").arg(place.tree()).arg("-o").arg(&image);
    build.args(["-S16"]).args(options).succeed();
    image
}

/// A driver in the foreground whose messages are kept.
pub(crate) struct Watched {
    driver: Child,
    pub(crate) point: PathBuf,
    log: PathBuf,
}

impl Watched {
    pub(crate) fn new(place: &Place, image: &Path) -> Self {
        let (point, log) = (place.path("mnt"), place.path("log"));
        fs::create_dir(&point).unwrap();
        let mut command = Command::new(driver());
        command
            .arg(image)
            .arg(&point)
            .args(["-f", "-o", "cachesize=1m"]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut driver = command.stderr(File::create(&log).unwrap()).spawn().unwrap();
        let start = Instant::now();
        while !mount::is_mount_point(&point) {
            assert!(driver.try_wait().unwrap().is_none(), "no mount");
            assert!(start.elapsed() < Duration::from_secs(60), "no mount");
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { driver, point, log }
    }

    /// Reads all files; each is right or an input/output error. Returns how many were right.
    pub(crate) fn read_all(&self) -> usize {
        let right = |number: &usize| match fs::read(self.point.join(name(*number))) {
            Ok(found) => {
                assert!(found == content(*number), "f{number}: other bytes");
                true
            }
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(5), "f{number}: {error}");
                false
            }
        };
        (0..FILES).filter(right).count()
    }

    /// Names and attributes are there, and the driver ends as it should.
    pub(crate) fn end(mut self) -> Vec<String> {
        assert_eq!(fs::read_dir(self.point.join("sub")).unwrap().count(), 5);
        let size = fs::metadata(self.point.join(name(FILES - 1)))
            .unwrap()
            .len();
        assert_eq!(size, FILE_LEN as u64);
        mount::unmount(&self.point).unwrap();
        assert_eq!(self.driver.wait().unwrap().code(), Some(0));
        let log = fs::read_to_string(&self.log).unwrap();
        log.lines().map(str::to_owned).collect()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Only after a failure there is something to end.
        if mount::is_mount_point(&self.point) {
            mount::unmount(&self.point).ok();
        }
        self.driver.kill().ok();
    }
}

/// What tells of failures, without severity and time.
pub(crate) fn told(log: &[String]) -> Vec<&str> {
    log.iter()
        .filter(|line| line.starts_with('E') || line.starts_with('W'))
        .filter_map(|line| line.splitn(3, ' ').nth(2))
        .collect()
}

/// Each line that tells of a failure, once.
pub(crate) fn check_told_once(log: &[String]) {
    let failures = told(log);
    assert!(!failures.is_empty(), "{log:?}");
    let mut once = failures.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), failures.len(), "{log:?}");
}

#[test]
fn an_image_that_is_replaced_or_removed_serves_on() {
    require!(mount::available());
    for is_replaced in [true, false] {
        let place = Place::new();
        let image = make_image(&place, &["-l1"]);
        let mounted = Watched::new(&place, &image);
        if is_replaced {
            let other = place.path("other");
            fs::write(&other, b"no image at all").unwrap();
            fs::rename(&other, &image).unwrap();
        } else {
            fs::remove_file(&image).unwrap();
        }
        assert_eq!(mounted.read_all(), FILES);
        mounted.end();
    }
}

#[test]
fn an_image_that_is_written_over_gives_errors_and_no_other_bytes() {
    require!(mount::available());
    for level in ["-l0", "-l1"] {
        let place = Place::new();
        let image = make_image(&place, &[level]);
        let mounted = Watched::new(&place, &image);
        assert_eq!(fs::read(mounted.point.join("f0")).unwrap(), content(0));
        let len = fs::metadata(&image).unwrap().len();
        let garbage = Random::new(1000).bytes(usize::try_from(len).unwrap());
        fs::write(&image, &garbage).unwrap();
        // What the kernel has in its pages stays.
        let right = mounted.read_all();
        assert!((1..FILES).contains(&right), "{level}: {right}");
        mounted.read_all();
        check_told_once(&mounted.end());
    }
}

#[test]
fn an_image_that_is_cut_in_the_middle_serves_what_is_left() {
    require!(mount::available());
    for level in ["-l0", "-l1"] {
        let place = Place::new();
        let image = make_image(&place, &[level]);
        let mounted = Watched::new(&place, &image);
        let file = File::options().write(true).open(&image).unwrap();
        file.set_len(file.metadata().unwrap().len() / 2).unwrap();
        let right = mounted.read_all();
        assert!((1..FILES).contains(&right), "{level}: {right}");
        mounted.read_all();
        check_told_once(&mounted.end());
    }
}

/// The image lies on a mount, whose connection is cut as that of a network disk is.
#[test]
fn an_image_on_a_disk_that_goes_away_gives_errors() {
    require!(mount::available());
    if !skip::is_root() {
        skip::skipped("only root may abort");
        return;
    }
    let place = Place::new();
    let image = make_image(&place, &["-l1"]);
    let disk_tree = place.path("disk-tree");
    fs::create_dir(&disk_tree).unwrap();
    fs::rename(&image, disk_tree.join("image.dwarfs")).unwrap();
    let disk_image = place.path("disk.dwarfs");
    let build = mkdwarfs()
        .arg("-i")
        .arg(&disk_tree)
        .arg("-o")
        .arg(&disk_image);
    build.arg("-l0").succeed();
    // Nothing of it is kept in the page cache.
    let disk = Mount::new(driver(), &disk_image, &["no_cache_files"]);
    let mounted = Watched::new(&place, &disk.path().join("image.dwarfs"));
    assert_eq!(fs::read(mounted.point.join("f0")).unwrap(), content(0));
    let minor = rustix::fs::minor(fs::metadata(disk.path()).unwrap().dev());
    abort(&place, minor);
    let right = mounted.read_all();
    assert!((1..FILES).contains(&right), "{right}");
    mounted.read_all();
    check_told_once(&mounted.end());
}

/// Cuts a connection through the file system that the kernel has for that.
fn abort(place: &Place, minor: u32) {
    let control = place.path("control");
    fs::create_dir(&control).unwrap();
    let mut command = Command::new("mount");
    command.args(["-t", "fusectl", "fusectl"]).arg(&control);
    assert!(command.status().unwrap().success());
    let aborted = fs::write(control.join(minor.to_string()).join("abort"), "1");
    mount::unmount(&control).unwrap();
    aborted.unwrap();
}
