//! The driver as systems use it: from fstab, below an overlay, with memory and readers coming and going.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use durin_testkit::mount::{self, Mount, is_mount_point};
use durin_testkit::{require, skip};

use crate::support::Place;

fn driver() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_dwarfs"))
}

fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

/// Runs a command with the driver found by name; programs of the system are found, too.
fn with_path(program: &str) -> Command {
    let programs = driver().parent().unwrap().display().to_string();
    let mut command = Command::new(program);
    command.env("PATH", format!("{programs}:/usr/sbin:/sbin:/usr/bin:/bin"));
    command
}

fn check_output(output: &Output) {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Needs root and the helper that mount(8) runs for file systems of FUSE.
fn can_mount_by_type() -> Result<(), String> {
    mount::available()?;
    if !skip::is_root() {
        return Err("mount(8) is for root".to_owned());
    }
    if Path::new("/sbin/mount.fuse").exists() || Path::new("/sbin/mount.fuse3").exists() {
        return Ok(());
    }
    Err("no mount.fuse3".to_owned())
}

/// mount(8) looks for drivers in the system's folders only, so this one is named by its path.
#[test]
fn mount_runs_the_driver_and_takes_lines_of_fstab() {
    require!(can_mount_by_type());
    let place = Place::new();
    let point = place.path("point");
    fs::create_dir(&point).unwrap();
    let source = format!("{}#{}", driver().display(), place.image().display());
    let mut directly = Command::new("mount");
    directly.args(["-t", "fuse", "-o", "ro,nodev,cachesize=16m"]);
    check_output(&run(directly.arg(&source).arg(&point)));
    assert_eq!(fs::read(point.join("hello")).unwrap(), b"hello\n");
    mount::unmount(&point).unwrap();

    let fstab = place.path("fstab");
    let options = "noauto,user,x-a=b,nofail,workers=1";
    let line = format!("{source} {} fuse {options} 0 0\n", point.display());
    fs::write(&fstab, line).unwrap();
    let mut by_fstab = Command::new("mount");
    check_output(&run(by_fstab.arg("-T").arg(&fstab).arg(&point)));
    assert_eq!(fs::read(point.join("hello")).unwrap(), b"hello\n");
    mount::unmount(&point).unwrap();
}

#[test]
fn an_overlay_takes_changes() {
    require!(mount::available());
    if !skip::is_root() {
        skip::skipped("overlays are for root");
        return;
    }
    let place = Place::new();
    let lower = Mount::new(driver(), &place.image(), &["allow_other"]);
    let [upper, work, point] = ["upper", "work", "point"].map(|name| place.path(name));
    // An overlay cannot have another overlay as its upper layer, which the root of a container often is.
    let memory = place.path("memory");
    fs::create_dir(&memory).unwrap();
    check_output(&run(Command::new("mount")
        .args(["-t", "tmpfs", "tmpfs"])
        .arg(&memory)));
    let [upper, work] = [upper, work].map(|path| memory.join(path.file_name().unwrap()));
    for dir in [&upper, &work, &point] {
        fs::create_dir(dir).unwrap();
    }
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        lower.path().display(),
        upper.display(),
        work.display()
    );
    let mounted = run(Command::new("mount")
        .args(["-t", "overlay", "overlay", "-o", &options])
        .arg(&point));
    if mounted.status.success() {
        fs::write(point.join("hello"), "changed\n").unwrap();
        fs::create_dir(point.join("sub/new")).unwrap();
        fs::write(point.join("sub/new/file"), "new\n").unwrap();
        fs::rename(point.join("hello"), point.join("sub/new/moved")).unwrap();
        install_a_package(&point);
        assert_eq!(fs::read(point.join("sub/new/moved")).unwrap(), b"changed\n");
        assert!(!point.join("hello").exists());
        assert_eq!(fs::read(lower.path().join("hello")).unwrap(), b"hello\n");
        mount::unmount(&point).unwrap();
    }
    mount::unmount(&memory).unwrap();
    check_output(&mounted);
}

/// A package made here, installed by the system's program for that into a root of its own, where there is one.
fn install_a_package(root: &Path) {
    let source = root.join("sub/package");
    fs::create_dir_all(source.join("DEBIAN")).unwrap();
    fs::create_dir_all(source.join("usr/share/durin-test")).unwrap();
    fs::write(source.join("usr/share/durin-test/file"), "installed\n").unwrap();
    let control = "Package: durin-test\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\nDescription: test\n";
    fs::write(source.join("DEBIAN/control"), control).unwrap();
    let package = root.join("sub/durin-test.deb");
    let built = with_path("dpkg-deb")
        .args(["--root-owner-group", "-b"])
        .args([&source, &package])
        .output();
    if !built.is_ok_and(|output| output.status.success()) {
        skip::skipped("no dpkg-deb: no package is installed into the overlay");
        return;
    }
    let mut install = with_path("dpkg");
    install
        .arg(format!("--root={}", root.display()))
        .args(["--force-script-chrootless", "-i"])
        .arg(&package);
    fs::create_dir_all(root.join("var/lib/dpkg/info")).unwrap();
    fs::create_dir_all(root.join("var/lib/dpkg/updates")).unwrap();
    fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    check_output(&run(&mut install));
    let installed = root.join("usr/share/durin-test/file");
    assert_eq!(fs::read(installed).unwrap(), b"installed\n");
}

#[test]
fn many_open_files_and_processes() {
    require!(mount::available());
    let place = Place::new();
    let mounted = Mount::new(driver(), &place.image(), &[]);
    let path = mounted.path().join("hello");
    let files: Vec<_> = (0..900).map(|_| fs::File::open(&path).unwrap()).collect();
    let children: Vec<_> = (0..100)
        .map(|_| {
            let mut cat = Command::new("cat");
            cat.arg(&path).stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in children {
        assert_eq!(child.wait_with_output().unwrap().stdout, b"hello\n");
    }
    drop(files);
    assert_eq!(mounted.unmount(), None);
}

#[test]
fn an_aborted_connection_leaves_no_dead_mount() {
    require!(mount::available());
    if !skip::is_root() {
        skip::skipped("only root may abort");
        return;
    }
    let place = Place::new();
    let mounted = Mount::new(driver(), &place.image(), &[]);
    assert!(is_mount_point(mounted.path()));
    let device = fs::metadata(mounted.path()).unwrap();
    let minor = rustix::fs::minor(std::os::unix::fs::MetadataExt::dev(&device));
    let control = place.path("control");
    fs::create_dir(&control).unwrap();
    check_output(&run(Command::new("mount")
        .args(["-t", "fusectl", "fusectl"])
        .arg(&control)));
    let aborted = fs::write(control.join(minor.to_string()).join("abort"), "1");
    mount::unmount(&control).unwrap();
    aborted.unwrap();
    let begun = Instant::now();
    while is_mount_point(mounted.path()) {
        assert!(begun.elapsed() < Duration::from_secs(30), "it still stands");
        std::thread::sleep(Duration::from_millis(5));
    }
}
