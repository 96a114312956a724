//! The disk under the file system that holds a mounted image dies: reads of what is not in memory are input/output
//! errors, told once for each block; the driver lives, and unmounts.
//!
//! Two disks die: a loop device whose file is cut off, and one of the device mapper that fails from then on.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use durin_testkit::mount;
use durin_testkit::{require, skip};
use rustix::fs::Advice;

use crate::support::Place;
use crate::vanishing::{FILES, Watched, check_told_once, content, make_image, told};

const DISK_LEN: u64 = 16 << 20;

/// A command that must succeed; gives what it prints.
fn run(program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    let output = command.args(arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Whether a command succeeds that asks for nothing but what is there.
fn can(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A file system on a disk that can be made to die.
struct Disk {
    backing: PathBuf,
    device: String,
    /// Its name, if it is one of the device mapper, above the loop device.
    mapped: Option<String>,
    point: PathBuf,
}

impl Disk {
    fn new(place: &Place, is_mapped: bool) -> Self {
        let (backing, point) = (place.path("disk"), place.path("disk-mnt"));
        fs::create_dir(&point).unwrap();
        File::create(&backing).unwrap().set_len(DISK_LEN).unwrap();
        run(
            "mkfs.ext4",
            &["-q", "-O", "^has_journal", backing.to_str().unwrap()],
        );
        let device = run("losetup", &["--find", "--show", backing.to_str().unwrap()]);
        let mut disk = Self {
            backing,
            device,
            mapped: None,
            point,
        };
        if is_mapped {
            let name = format!("durin-test-{}", std::process::id());
            let table = format!("0 {} linear {} 0", DISK_LEN / 512, disk.device);
            run("dmsetup", &["create", &name, "--table", &table]);
            disk.mapped = Some(name);
        }
        disk
    }

    fn mount(&self, option: &str) {
        let device = match &self.mapped {
            Some(name) => format!("/dev/mapper/{name}"),
            None => self.device.clone(),
        };
        run(
            "mount",
            &["-o", option, &device, self.point.to_str().unwrap()],
        );
    }

    /// Puts the image on it and mounts it such that nothing of the file is in memory.
    fn take(&self, image: &Path) -> PathBuf {
        let kept = self.point.join("image.dwarfs");
        self.mount("rw");
        fs::copy(image, &kept).unwrap();
        mount::unmount(&self.point).unwrap();
        self.mount("ro");
        let file = File::open(&kept).unwrap();
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        kept
    }

    fn die(&self) {
        match &self.mapped {
            // Whatever is asked for next fails.
            Some(name) => drop(run("dmsetup", &["wipe_table", "--nolockfs", name])),
            None => {
                let backing = File::options().write(true).open(&self.backing).unwrap();
                backing.set_len(0).unwrap();
            }
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if mount::is_mount_point(&self.point) {
            can("umount", &["-l", self.point.to_str().unwrap()]);
        }
        if let Some(name) = &self.mapped {
            can("dmsetup", &["remove", "--retry", name]);
        }
        can("losetup", &["--detach", &self.device]);
    }
}

fn errors_and_no_signal(is_mapped: bool) {
    for level in ["-l0", "-l1"] {
        let place = Place::new();
        let image = make_image(&place, &[level]);
        let disk = Disk::new(&place, is_mapped);
        let kept = disk.take(&image);
        fs::remove_file(&image).unwrap();
        let mounted = Watched::new(&place, &kept);
        assert_eq!(fs::read(mounted.point.join("f0")).unwrap(), content(0));
        disk.die();
        let file = File::open(&kept).unwrap();
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        drop(file);
        // What is in memory serves on, and f0 is.
        let right = mounted.read_all();
        assert!((1..FILES).contains(&right), "{level}: {right}");
        mounted.read_all();
        let log = mounted.end();
        check_told_once(&log);
        assert!(
            told(&log).iter().any(|line| line.contains("block")),
            "{log:?}"
        );
    }
}

fn ready() -> Result<(), String> {
    mount::available()?;
    if !skip::is_root() {
        return Err("only root can make a disk".to_owned());
    }
    match ["mkfs.ext4", "losetup"]
        .iter()
        .find(|program| !can(program, &["-V"]))
    {
        Some(program) => Err(format!("no {program}")),
        None => Ok(()),
    }
}

#[test]
fn a_disk_that_is_cut_off_gives_errors() {
    require!(ready());
    errors_and_no_signal(false);
}

#[test]
fn a_disk_that_fails_gives_errors() {
    require!(ready());
    if !can("dmsetup", &["version"]) {
        // No package brings the kernel's part, so this is no failure where every test must run.
        let why =
            "no device mapper: `dmsetup version` fails; the disk that is cut off stands for it";
        drop(writeln!(std::io::stderr(), "SKIPPED: {why}"));
        return;
    }
    errors_and_no_signal(true);
}
